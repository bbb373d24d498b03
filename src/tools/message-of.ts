/** The words of whatever was thrown: modules of operators may throw anything. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
