/**
 * Sends spans to an OpenTelemetry collector (OTLP over HTTP), in batches. The library's own packages are loaded only
 * here, and this file only where `OTEL_EXPORTER_OTLP_ENDPOINT` is set.
 */
import { type Link, type SpanContext, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { TRACE_BATCH_MS, TRACE_QUEUE_MAX_SPANS, TRACE_SEND_TIMEOUT_MS } from '../limits.ts';
import { VERSION } from '../version.ts';
import { identifiersOf, type SpanRecord, type Tracing } from './tracing.ts';

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/** `endpoint` is the collector's base URL; traces go to `/v1/traces` below it (OTLP specification). */
export function openTracing(endpoint: string, nodeId: string): Tracing {
  const resource = resourceFromAttributes({
    'service.name': 'sidetone',
    'service.version': VERSION,
    'service.instance.id': nodeId,
  });
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/$/, '')}/v1/traces`,
    timeoutMillis: TRACE_SEND_TIMEOUT_MS,
  });
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: TRACE_QUEUE_MAX_SPANS,
    scheduledDelayMillis: TRACE_BATCH_MS,
    exportTimeoutMillis: TRACE_SEND_TIMEOUT_MS,
  });
  return {
    record(span) {
      const made = readable(span, resource);
      if (made !== undefined) processor.onEnd(made);
    },
    close: async () => {
      await processor.shutdown().catch(() => {});
    },
  };
}

function readable(span: SpanRecord, resource: Resource): ReadableSpan | undefined {
  const own = contextOf(span.traceparent);
  if (own === undefined) return undefined;
  const parent = contextOf(span.parent);
  const linked = contextOf(span.link);
  const links: Link[] = linked === undefined ? [] : [{ context: { ...linked, isRemote: true } }];
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => own,
    ...(parent === undefined ? {} : { parentSpanContext: parent }),
    startTime: timeOf(span.startedAt),
    endTime: timeOf(span.endedAt),
    duration: timeOf(Math.max(0, span.endedAt - span.startedAt)),
    status: { code: span.isFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: { ...span.attributes },
    links,
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: 'sidetone', version: VERSION },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function contextOf(traceparent: string): SpanContext | undefined {
  const found = identifiersOf(traceparent);
  return found === undefined ? undefined : { ...found, traceFlags: TraceFlags.SAMPLED };
}

/** Seconds and nanoseconds. */
const timeOf = (ms: number): [number, number] => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];
