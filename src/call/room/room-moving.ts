import { problems } from '../../problem.ts';

const RETRY_SEC = 1;

/** The answer to whoever comes to a Room that is on its way to another node. */
export const roomIsMoving = problems.unavailable('The Room is moving to another node.', RETRY_SEC);
