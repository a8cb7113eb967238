package check

import (
	"context"
	"fmt"
	"strings"

	"tutti/ingest/signing"
	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/report/alert"
)

// AlertConfig returns the settings that all receivers of alerts share.
func AlertConfig(cfg config.Config, version string) alert.Config {
	return alert.Config{PublicURL: strings.TrimRight(cfg.Server.PublicURL, "/"), UserAgent: "tutti/" + version, Sign: signing.Sign}
}

// AlertTargets returns the receivers of alerts, in the order of the configuration.
func AlertTargets(cfg config.Config) []alert.Target {
	targets := make([]alert.Target, 0, len(cfg.Alerts))
	for i, c := range cfg.Alerts {
		t := alert.Target{
			URL: c.URL.Reveal(), Format: c.Format, Repositories: c.Repositories, MinInterval: c.MinInterval,
			Token: c.Token.Reveal(), Secret: c.Secret.Reveal(), TLS: c.TLS.Files(setting.Indexed("alerts", i)),
		}
		for _, event := range c.Events {
			t.Kinds = append(t.Kinds, alert.Kind(event))
		}
		targets = append(targets, t)
	}
	return targets
}

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
