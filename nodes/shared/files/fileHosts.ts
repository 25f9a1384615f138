import { isWebAddress } from '../text/webAddress';

/** Whether a link, or the target of a redirect, may be fetched. */
export type MayFetch = (url: string) => boolean;

/**
 * - `public`: a name, or a public IP address. Checking what a name resolves to is left to n8n's SSRF guard
 * - `local`: loopback, private, unique-local and carrier-grade NAT addresses, and names that resolve only inside a network
 * - `special`: link-local, multicast, unspecified and reserved addresses, and those where clouds serve a machine's
 *   credentials
 */
export type Network = 'public' | 'local' | 'special';

type Range = readonly [network: Network, first: string, bits: number];

const IPV4_RANGES: readonly Range[] = [
	['local', '10.0.0.0', 8],
	['local', '100.64.0.0', 10],
	['local', '127.0.0.0', 8],
	['local', '172.16.0.0', 12],
	['local', '192.168.0.0', 16],
	['special', '0.0.0.0', 8],
	['special', '169.254.0.0', 16],
	['special', '192.0.0.0', 24],
	['special', '198.18.0.0', 15],
	['special', '224.0.0.0', 3],
];

/** Names without a dot, such as those of containers, and those below domains that are not on the Internet. */
const LOCAL_NAME =
	/^[^.]+$|\.(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|consul|svc)$/;

/** Where clouds serve a machine's credentials, apart from link-local addresses. */
const METADATA_HOST =
	/^(?:100\.100\.100\.200|\[fd00:ec2:.*|\[fd20:ce::254\]|metadata(?:\.google\.internal|\.goog)?|instance-data(?:\.ec2\.internal)?)$/;

/** Addresses, and names for 127.0.0.1 and ::1. A base URL that is a name does not allow them: n8n itself is at one. */
const ADDRESS =
	/^[\d.]+$|^\[|^(?:ip6-)?(?:localhost|loopback)\d*\.?$|(?:^|\.)localhost(?:\.localdomain)?\d*\.?$/;

export const ALLOW_HOST =
	"If your files are there, add the host to 'File Hosts' in the FlowPlatform API credential, under 'Show Expert Fields'.";

/** @param hostname from the URL parser, which has normalized decimal, octal and hex spellings */
export function networkOf(hostname: string): Network {
	const host = hostname.toLowerCase().replace(/\.$/, '');
	if (METADATA_HOST.test(host)) return 'special';
	if (host.startsWith('[')) return networkOfIpv6(host.slice(1, -1));
	if (/^\d+(?:\.\d+){3}$/.test(host)) return networkOfIpv4(ipv4Of(host));
	return LOCAL_NAME.test(host) ? 'local' : 'public';
}

function ipv4Of(address: string): number {
	return address.split('.').reduce((all, part) => all * 256 + Number(part), 0);
}

function networkOfIpv4(address: number): Network {
	const range = IPV4_RANGES.find(([, first, bits]) => (address ^ ipv4Of(first)) >>> (32 - bits) === 0);
	return range?.[0] ?? 'public';
}

/** Only global unicast addresses are public, except 2002::/16, which can embed a private IPv4 address. */
function networkOfIpv6(address: string): Network {
	const first = Number.parseInt(address, 16) || 0;
	if (address === '::1' || (first & 0xfe00) === 0xfc00) return 'local';
	return (first & 0xe000) === 0x2000 && first !== 0x2002 ? 'public' : 'special';
}

/**
 * Decides which links may be fetched. Links come from a platform, an agent or data from outside, so they must not reach
 * into n8n's own network, unless the platform itself is there or the operator has listed the host.
 * @param listed hosts that `readFileHosts` has read
 */
export function fileHostRule(baseUrl: string, listed: readonly string[]): MayFetch {
	const base = URL.parse(baseUrl)?.hostname ?? '';
	const allowed = new Set([...listed, base]);
	const isInside = networkOf(base) === 'local';
	return (link) => {
		if (!isWebAddress(link)) return false;
		const { hostname, port, protocol } = new URL(link);
		const network = networkOf(hostname);
		const isNear = isInside && (ADDRESS.test(base) || !ADDRESS.test(hostname));
		if (network === 'public' || (network === 'local' && isNear)) return true;
		return allowed.has(hostname) || allowed.has(`${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`);
	};
}

/** @returns the entries of *File Hosts* as the URL parser writes them, or the first that is not a host */
export function readFileHosts(entered: string): { readonly hosts: string[] } | { readonly wrong: string } {
	const hosts: string[] = [];
	for (const entry of entered.split(/[\s,;]+/).filter(Boolean)) {
		const [, name = '', port] =
			/^(\[[^\]]*\]|[^[\]:]+|[^[\]:]*:[^[\]:]*:[^[\]]*)(?::(\d{1,5}))?$/.exec(entry) ?? [];
		const bracketed = /^[^[]*:/.test(name) ? `[${name}]` : name;
		const url = /[/?#@\\]/.test(bracketed) ? null : URL.parse(`http://${bracketed}`);
		if (!url) return { wrong: entry };
		hosts.push(port === undefined ? url.hostname : `${url.hostname}:${port}`);
	}
	return { hosts };
}
