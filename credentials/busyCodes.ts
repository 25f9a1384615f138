/** Codes and words by which an answer with HTTP 200 refuses a request because there are too many. */
export const DEFAULT_BUSY_CODES =
	'429, too frequent, too many requests, rate limit, system busy, system is busy, server is busy, 请求过于频繁, 系统繁忙';
