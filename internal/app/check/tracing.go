package check

import (
	"context"

	"tutti/internal/app/settings"
	"tutti/internal/app/tracing"
	"tutti/internal/config"
	"tutti/internal/core"
)

const subjectTracing = "tracing"

// tracingProbe sends a request without spans to the receiver of traces; nil when there is none. tutti starts without it.
func tracingProbe(t config.Tracing, opts Options) probe {
	if !t.Enabled() {
		return nil
	}
	return func(ctx context.Context) []Finding {
		host := hostOf(t.Endpoint.Reveal())
		err := tracing.Probe(ctx, settings.Tracing(t, opts.Version))
		switch core.CodeOf(err) {
		case "":
			return []Finding{{subjectTracing, StatusOK, host + " takes traces", ""}}
		case core.CodeUnavailable:
			reason, hint := t.TLS.Files(subjectTracing).Failure(err)
			return []Finding{{subjectTracing, StatusWarn, host + " cannot be reached: " + reason, hint}}
		case core.CodeInvalid:
			return []Finding{{subjectTracing, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		default:
			return []Finding{{
				subjectTracing, StatusWarn, host + ": " + core.MessageOf(err),
				"set tracing.endpoint to a receiver of OTLP over HTTP, usually on port 4318, and tracing.headers to its credentials",
			}}
		}
	}
}
