/** The nine that every environment has, and that also stand alone. */
export const ENVIRONMENT_ROUTES: readonly (readonly [method: string, suffix: string])[] = [
  ['GET', 'tools'],
  ['GET', 'splits'],
  ['GET', 'task_tools'],
  ['GET', 'prompt'],
  ['POST', 'tasks'],
  ['POST', 'num_tasks'],
  ['POST', 'task'],
  ['POST', 'task_range'],
  ['POST', 'call'],
];

/** Those that name no environment. */
export const ROOT_ROUTES: readonly (readonly [method: string, suffix: string])[] = [
  ['GET', 'list_environments'],
  ['GET', 'version'],
  ['POST', 'create_session'],
  ['POST', 'create'],
  ['POST', 'ping'],
  ['POST', 'delete'],
  ['POST', 'delete_session'],
];

/** A body that every one of them takes that reads one. */
export const bodyFor = (suffix: string): object | undefined => {
  switch (suffix) {
    case 'tasks':
    case 'num_tasks':
    case 'task_range':
      return { split: 'train' };
    case 'task':
    case 'create':
      return { split: 'train', index: 0 };
    case 'call':
      return { name: 'submit', input: { n: 0 } };
    default:
      return undefined;
  }
};
