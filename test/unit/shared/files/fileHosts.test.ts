import {
	fileHostRule,
	networkOf,
	readFileHosts,
	type Network,
} from '../../../../nodes/shared/files/fileHosts';

const PUBLIC = fileHostRule('https://platform.example.com', []);

describe('networkOf', () => {
	it.each<[string, Network]>([
		['platform.example.com', 'public'],
		['8.8.8.8', 'public'],
		['172.15.255.255', 'public'],
		['172.16.0.0', 'local'],
		['172.31.255.255', 'local'],
		['172.32.0.0', 'public'],
		['10.1.2.3', 'local'],
		['192.168.0.1', 'local'],
		['192.169.0.1', 'public'],
		['100.63.255.255', 'public'],
		['100.64.0.1', 'local'],
		['100.127.255.255', 'local'],
		['100.128.0.0', 'public'],
		['127.0.0.1', 'local'],
		['127.1', 'local'],
		['127.255.255.254', 'local'],
		['2130706433', 'local'],
		['0x7f000001', 'local'],
		['0177.0.0.1', 'local'],
		['0x7f.0.0.1', 'local'],
		['127.0.0.1.', 'local'],
		['127。0。0。1', 'local'],
		['１２７.0.0.1', 'local'],
		['localhost', 'local'],
		['LOCALHOST', 'local'],
		['localhost.', 'local'],
		['a.b.localhost', 'local'],
		['notlocalhost.example', 'public'],
		['localhost.example.com', 'public'],
		['redis', 'local'],
		['n8n-worker.', 'local'],
		['host.docker.internal', 'local'],
		['api.default.svc.cluster.local', 'local'],
		['vault.service.consul', 'local'],
		['nas.home.arpa', 'local'],
		['local.example.com', 'public'],
		['mylan.example.com', 'public'],
		['metadata.google.internal', 'special'],
		['metadata.goog', 'special'],
		['metadata', 'special'],
		['instance-data', 'special'],
		['instance-data.ec2.internal', 'special'],
		['metadata-store', 'local'],
		['100.100.100.200', 'special'],
		['[fd00:ec2:0::254]', 'special'],
		['[fd00:ec2::23]', 'special'],
		['[fd00:ec20::23]', 'local'],
		['0.0.0.0', 'special'],
		['0', 'special'],
		['169.254.169.254', 'special'],
		['2852039166', 'special'],
		['224.0.0.1', 'special'],
		['239.255.255.250', 'special'],
		['255.255.255.255', 'special'],
		['198.18.0.1', 'special'],
		['[::1]', 'local'],
		['[0:0:0:0:0:0:0:1]', 'local'],
		['[::]', 'special'],
		['[::ffff:127.0.0.1]', 'special'],
		['[::127.0.0.1]', 'special'],
		['[::ffff:8.8.8.8]', 'special'],
		['[64:ff9b::10.0.0.1]', 'special'],
		['[2002:7f00:1::]', 'special'],
		['[fc00::1]', 'local'],
		['[fdff:ffff::1]', 'local'],
		['[fe80::1]', 'special'],
		['[febf::1]', 'special'],
		['[fec0::1]', 'special'],
		['[1fff::1]', 'special'],
		['[4000::1]', 'special'],
		['[ff02::1]', 'special'],
		['[2606:4700:4700::1111]', 'public'],
		['[2001:db8::]', 'public'],
	])('classifies %s as %s', (host, network) => {
		const { hostname } = new URL(`http://${host}/`);
		expect(networkOf(hostname)).toBe(network);
		expect(PUBLIC(`http://${host}:8080/a.png`)).toBe(network === 'public');
	});
});

describe('fileHostRule', () => {
	it.each<[string, string[], string, boolean]>([
		['http://127.0.0.1:8188', [], 'http://127.0.0.1:9000/a', true],
		['http://127.0.0.1:8188', [], 'http://10.0.0.9/a', true],
		['http://10.0.0.5', [], 'http://localhost/a', true],
		['http://10.0.0.5', [], 'http://169.254.169.254/latest', false],
		['http://10.0.0.5', [], 'http://100.100.100.200/latest', false],
		['http://platform:8188', [], 'http://minio:9000/a', true],
		['http://platform:8188', [], 'http://127.0.0.1:5678/rest', false],
		['http://platform:8188', [], 'http://localhost:5678/rest', false],
		['http://platform:8188', [], 'http://localhost.localdomain:5678/rest', false],
		['http://platform:8188', [], 'http://10.0.0.7/', false],
		['http://my-localhost-proxy', [], 'http://10.0.0.7/', false],
		['http://ip6-localhost:8188', [], 'http://127.0.0.1:9000/a', true],
		['http://platform:8188', ['10.0.0.7'], 'http://10.0.0.7/', true],
		['http://host.docker.internal', [], 'http://[fd00::9]/', false],
		['http://flow.default.svc.cluster.local', [], 'http://100.64.0.1/', false],
		['http://localhost:8188', [], 'http://10.0.0.7/', true],
		['http://[fd00::9]', [], 'http://127.0.0.1:9000/a', true],
		['https://p.example', [], 'http://minio:9000/a', false],
		['https://p.example', ['minio:9000'], 'http://minio:9000/a', true],
		['', [], 'http://redis:6379/', false],
		['http://169.254.1.1', [], 'http://169.254.1.1/a', true],
		['http://169.254.1.1', [], 'http://169.254.169.254/a', false],
		['https://p.example', [], 'http://10.0.0.5/a', false],
		['https://p.example', ['10.0.0.5'], 'http://10.0.0.5:9000/a', true],
		['https://p.example', ['10.0.0.5:9000'], 'http://10.0.0.5:9000/a', true],
		['https://p.example', ['10.0.0.5:80'], 'http://10.0.0.5/a', true],
		['https://p.example', ['10.0.0.5:9000'], 'http://10.0.0.5:9001/a', false],
		['https://p.example', ['10.0.0.5'], 'http://10.0.0.50/a', false],
		['https://p.example', ['[::1]'], 'http://[0::1]:1/a', true],
		['https://p.example', ['localhost'], 'http://127.0.0.1/a', false],
		['https://p.example', [], 'javascript:alert(1)', false],
		['https://p.example', [], 'https://user@127.0.0.1/', false],
	])('with the base URL %s and the hosts %j, the link %s is allowed: %s', (base, listed, link, expected) => {
		expect(fileHostRule(base, listed)(link)).toBe(expected);
	});
});

describe('readFileHosts', () => {
	it.each<[string, string[]]>([
		['', []],
		[
			' files.internal, 10.0.0.5:9000\n[::1] ::1;fd00::5',
			['files.internal', '10.0.0.5:9000', '[::1]', '[::1]', '[fd00::5]'],
		],
		['LocalHost 0x7f.1 [::1]:80', ['localhost', '127.0.0.1', '[::1]:80']],
	])('reads %j', (entered, hosts) => {
		expect(readFileHosts(entered)).toEqual({ hosts });
	});

	it.each(['http://10.0.0.5', '10.0.0.5/files', 'a b@c', '999.1.1.1', '10.0.0.0/8', '[::1'])(
		'refuses %j',
		(entered) => {
			expect(readFileHosts(entered)).toEqual({ wrong: entered.split(' ').at(-1) });
		},
	);
});
