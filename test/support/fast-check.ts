/**
 * fast-check, whose lists and texts are as long as a test lets them be. By itself it makes none of more than ten items,
 * whatever the `maxLength`, so that no story would be long enough to fill what holds sixty.
 */
import fc from 'fast-check';

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true });

export default fc;
