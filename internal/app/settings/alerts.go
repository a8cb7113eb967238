package settings

import (
	"strings"

	"tutti/ingest/signing"
	"tutti/internal/base/setting"
	"tutti/internal/config"
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
