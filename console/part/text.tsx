/** Texts that strangers wrote, within ours. */
import { visible } from './visible.ts';

/** A text. A language that is written from right to left does not turn what is beside it. */
export const Foreign = ({ text }: { readonly text: string }) => <bdi>{visible(text)}</bdi>;

/** An address, `sip:user@host`. Its parts stay in their order, whatever letters they have. */
export const Address = ({ text }: { readonly text: string }) => (
  <bdi dir="ltr">
    {visible(text)
      .split(/([@:;])/)
      .map((part, index) => (
        <bdi key={index}>{part}</bdi>
      ))}
  </bdi>
);
