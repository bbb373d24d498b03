/**
 * Why a stream ended; logs and metrics use these names.
 *
 *     client         the other side closed it, or the connection to it broke
 *     slow           nothing was taken for too long; it resumes by its id
 *     token_expired  the token it was opened with has ended
 *     draining       this gateway is about to stop
 *     finished       everything was sent, the end too
 */
export const CLOSE_REASONS = ['client', 'slow', 'token_expired', 'draining', 'finished'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];
