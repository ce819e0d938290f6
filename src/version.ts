/** The release, as `package.json` names it. */
import about from '../package.json' with { type: 'json' };

export const VERSION: string = about.version;
