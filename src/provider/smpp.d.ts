/**
 * The part of node-smpp that is used, its PDU codec, typed as it behaves. A field of a PDU from the wire may be missing
 * or of any type.
 */
declare module 'smpp' {
  export class PDU {
    constructor(command: string, fields: Readonly<Record<string, unknown>>);
    /** Reads a PDU. False when the buffer holds no whole one. Throws on fields that end before they should. */
    static fromBuffer(buffer: Buffer): PDU | false;
    readonly command: string;
    readonly command_status: number;
    readonly sequence_number: number;
    readonly message_id?: unknown;
    readonly short_message?: unknown;
    readonly message_payload?: unknown;
    readonly receipted_message_id?: unknown;
    readonly message_state?: unknown;
    readonly source_addr?: unknown;
    readonly destination_addr?: unknown;
    readonly esm_class?: unknown;
    readonly data_coding?: unknown;
    readonly source_addr_ton?: unknown;
    readonly sar_msg_ref_num?: unknown;
    readonly sar_total_segments?: unknown;
    readonly sar_segment_seqnum?: unknown;
    readonly registered_delivery?: unknown;
    readonly system_id?: unknown;
    readonly password?: unknown;
    isResponse(): boolean;
    response(fields?: Readonly<Record<string, unknown>>): PDU;
    toBuffer(): Buffer;
  }
  /** How text lies in bytes, by the name of its data_coding, and the name of that for data_coding 0. */
  export const encodings: { ASCII: object; readonly LATIN1: object };
  /** The optional fields, by their names. */
  export const tlvs: { readonly receipted_message_id: { type: FieldType } };
  /**
   * How a field lies in a PDU. `read` throws where it would end beyond the buffer; `length` is given of an optional
   * one.
   */
  interface FieldType {
    read(buffer: Buffer, offset: number, length?: number): unknown;
    size(value: unknown): number;
  }
  interface CommandFields {
    /** The mandatory fields in their order. */
    readonly params?: Readonly<Record<string, { readonly type: FieldType }>>;
  }
  export const commandsById: Readonly<Record<number, CommandFields | undefined>>;
}
