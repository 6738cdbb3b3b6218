package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// flushTimeout is how long the end of the service waits for the last spans to be exported.
const flushTimeout = 3 * time.Second

// wantsTraces reports whether the standard variables of OpenTelemetry ask for traces, or what is wrong with them. The
// exporter and the sampler read the others:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
func wantsTraces(env lookup) (bool, error) {
	get := func(name string) string { value, _ := env(name); return value }
	exporter := get("OTEL_TRACES_EXPORTER")
	endpoint := cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), get("OTEL_EXPORTER_OTLP_ENDPOINT"))
	switch {
	case get("OTEL_SDK_DISABLED") == "true" || exporter == "none" || exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, usagef("OTEL_TRACES_EXPORTER is %q; Paddock exports traces as otlp, or none", exporter)
	}
	protocol := cmp.Or(get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), get("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" {
		return false, usagef("OTEL_EXPORTER_OTLP_PROTOCOL is %q; Paddock exports traces over http/protobuf, "+
			"which collectors take on port 4318", protocol)
	}
	return true, nil
}

// startTraces returns what receives spans, nil if the environment asks for none, and a function that exports the last
// ones.
func (p *program) startTraces(ctx context.Context) (trace.TracerProvider, func(), error) {
	wanted, err := wantsTraces(p.env)
	if err != nil || !wanted {
		return nil, func() {}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("paddock"), semconv.ServiceVersion(version().Version)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(traceErrors{p.log})
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(described))
	p.log.Info("exporting traces")
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			p.log.Warn("the last traces were not exported", "error", err)
		}
	}, nil
}

// statementTracer returns what makes spans of statements, below those of traced requests only. Their text is recorded,
// but not their parameters, which may have a lease_id.
func statementTracer(traces trace.TracerProvider) pgx.QueryTracer {
	if traces == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(traces), otelpgx.WithDisableConnectionDetailsInAttributes())
}

// traceErrors logs what the exporter reports. Traces are lost then, and nothing else.
type traceErrors struct{ log *slog.Logger }

func (t traceErrors) Handle(err error) { t.log.Warn("traces are not exported", "error", err) }

// A traceHandler adds the ids of the trace and the span to each record that is logged for a traced request.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
