/** The part of n8n's SDK for AI nodes that the node uses; the SDK exists only inside n8n. */
declare module '@n8n/ai-node-sdk' {
	import type { ISupplyDataFunctions, SupplyData } from 'n8n-workflow';

	/** A model behind an OpenAI-compatible interface. */
	export interface OpenAiModel {
		type: 'openai';
		baseUrl: string;
		apiKey: string;
		model: string;
		/** More fields for the body of each request. */
		additionalParams?: Record<string, unknown>;
		temperature?: number;
		topP?: number;
		maxTokens?: number;
		frequencyPenalty?: number;
		presencePenalty?: number;
		maxRetries?: number;
		/** In milliseconds. */
		timeout?: number;
		streamUsage?: boolean;
		useResponsesApi?: boolean;
		/** Called with the error of each failed request; may throw to prevent a retry. */
		onFailedAttempt?: (error: Error) => void;
	}

	export function supplyModel(context: ISupplyDataFunctions, model: OpenAiModel): SupplyData;
}
