package check

import (
	"context"
	"fmt"

	"tutti/internal/base/setting"
	"tutti/internal/core"
	"tutti/internal/report/alert"
)

// alertProbe probes a receiver of alerts, which gets no message. tutti starts without it.
func alertProbe(number int, t alert.Target, cfg alert.Config) probe {
	return func(ctx context.Context) []Finding {
		name := setting.Indexed("alerts", number) + " (" + t.Host() + ")"
		switch status, reason, hint, err := alert.Probe(ctx, t, cfg); {
		case err != nil:
			return []Finding{{"alerts", StatusFail, core.MessageOf(err), core.HintOf(err)}}
		case reason != "":
			return []Finding{{"alerts", StatusWarn, name + ": " + reason, hint}}
		default:
			return []Finding{{"alerts", StatusOK, fmt.Sprintf("%s answers HEAD with status %d; tutti alerts test sends a message", name, status), ""}}
		}
	}
}
