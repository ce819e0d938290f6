/** Settings of arktype's own words, which it makes while it is loaded: see `type.ts`. */
import { configure } from 'arktype/config';

configure({ jitless: true });
