import { Credentials, getAdditionalKeys } from 'n8n-core';
import {
	ICredentialsHelper,
	NodeHelpers,
	UnexpectedError,
	type ICredentialDataDecryptedObject,
	type ICredentials,
	type ICredentialsExpressionResolveValues,
	type IExecuteData,
	type IHttpRequestOptions,
	type INodeCredentialsDetails,
	type INodeParameters,
	type INodeProperties,
	type IRequestOptionsSimplified,
	type IWorkflowDataProxyAdditionalKeys,
	type IWorkflowExecuteAdditionalData,
	type WorkflowExecuteMode,
} from 'n8n-workflow';
import type { TypeRegistry } from './type.registry';

/** Credentials by ID, or by type if a run needs only one of that type. */
export type CredentialStore = Record<string, ICredentialDataDecryptedObject>;

/**
 * Mirrors credentials-helper of n8n's `cli` package, without the database, external secrets, the AI
 * gateway and dynamic credentials, which no node can tell apart from a plain stored credential.
 */
export class CredentialsHelper extends ICredentialsHelper {
	constructor(
		private readonly types: TypeRegistry,
		private readonly store: CredentialStore,
	) {
		super();
	}

	/** The package's credentials sign requests by a function, if at all. */
	async authenticate(
		credentials: ICredentialDataDecryptedObject,
		typeName: string,
		incoming: IHttpRequestOptions | IRequestOptionsSimplified,
	): Promise<IHttpRequestOptions> {
		// The simplified options differ only in `uri`; n8n's helper passes both on in the same way.
		const requestOptions = incoming as IHttpRequestOptions;
		const type = this.types.getCredentialType(typeName);
		// Called as a method, because it may use `this`.
		return typeof type.authenticate === 'function'
			? await type.authenticate(credentials, requestOptions)
			: requestOptions;
	}

	async getDecrypted(
		additionalData: IWorkflowExecuteAdditionalData,
		nodeCredentials: INodeCredentialsDetails,
		type: string,
		mode: WorkflowExecuteMode,
		executeData?: IExecuteData,
		raw?: boolean,
		expressionResolveValues?: ICredentialsExpressionResolveValues,
	): Promise<ICredentialDataDecryptedObject> {
		const stored = this.find(nodeCredentials, type);
		if (raw === true) return stored;
		const withDefaults = {
			// Credentials are described like node parameters, but n8n's types differ.
			...NodeHelpers.getNodeParameters(
				this.getCredentialsProperties(type),
				stored as INodeParameters,
				true,
				false,
				null,
				null,
			),
			// These fields are not properties of every type, but are passed on if stored.
			...pick(stored, 'oauthTokenData', 'allowedHttpRequestDomains', 'allowedDomains'),
		} as ICredentialDataDecryptedObject;
		const keys = getAdditionalKeys(additionalData, mode, null, { isCredential: true });
		return resolveData(withDefaults, mode, keys, executeData, expressionResolveValues);
	}

	/** None, because the package's credentials extend no others. */
	getParentTypes(): string[] {
		return [];
	}

	getCredentialsProperties(type: string): INodeProperties[] {
		return this.types.getCredentialType(type).properties;
	}

	isCredentialUsableByNode(credentialType: string, nodeType: string): boolean {
		const { restrictToSupportedNodes, supportedNodes = [] } = this.types.getCredentialType(credentialType);
		return !restrictToSupportedNodes || supportedNodes.some((name) => nodeType.endsWith(`.${name}`));
	}

	/** Does nothing, because the package's credentials have no token that expires. */
	async preAuthentication(): Promise<undefined> {
		return undefined;
	}

	async runPreAuthentication(): Promise<undefined> {
		return undefined;
	}

	async getCredentials(nodeCredentials: INodeCredentialsDetails, type: string): Promise<ICredentials> {
		const credentials = new Credentials({ id: nodeCredentials.id, name: nodeCredentials.name }, type);
		await credentials.setData(this.find(nodeCredentials, type));
		return credentials;
	}

	async updateCredentials(
		nodeCredentials: INodeCredentialsDetails,
		type: string,
		data: ICredentialDataDecryptedObject,
	): Promise<void> {
		Object.assign(this.find(nodeCredentials, type), data);
	}

	async updateCredentialsOauthTokenData(): Promise<void> {
		throw new UnexpectedError('The harness holds no OAuth credentials');
	}

	private find({ id, name }: INodeCredentialsDetails, type: string): ICredentialDataDecryptedObject {
		if (!id) throw new UnexpectedError('Found credential with no ID.', { extra: { credentialName: name } });
		const data = this.store[id] ?? this.store[type];
		if (!data) throw new Error(`Credential with ID "${id}" does not exist for type "${type}".`);
		return structuredClone(data);
	}
}

function pick(data: ICredentialDataDecryptedObject, ...names: string[]): ICredentialDataDecryptedObject {
	return Object.fromEntries(Object.entries(data).filter(([name]) => names.includes(name)));
}

/** Evaluates expressions in a credential's fields. Outside an execution they have no items. */
function resolveData(
	data: ICredentialDataDecryptedObject,
	mode: WorkflowExecuteMode,
	keys: IWorkflowDataProxyAdditionalKeys,
	executeData?: IExecuteData,
	values?: ICredentialsExpressionResolveValues,
): ICredentialDataDecryptedObject {
	if (!values) return data;
	const { workflow, runExecutionData, runIndex, itemIndex, node, connectionInputData } = values;
	return workflow.expression.getParameterValue(
		data as INodeParameters,
		runExecutionData,
		runIndex,
		itemIndex,
		node.name,
		connectionInputData,
		mode,
		keys,
		executeData,
		false,
		data,
	) as ICredentialDataDecryptedObject;
}
