/** Said to the user in one sentence, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
