package check

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/store"
)

// DefaultTimeout bounds each look at a service.
const DefaultTimeout = 10 * time.Second

const subjectConfiguration = "configuration"

// Options are what Run needs beside the configuration. The zero value is the default.
type Options struct {
	// Timeout bounds each look at a service; 0 means DefaultTimeout.
	Timeout time.Duration
	// Version is the program's version, for the User-Agent; "dev" by default.
	Version string
}

// probe looks at one thing within ctx.
type probe func(ctx context.Context) []Finding

// Run looks at everything that cfg names, all at once, and gives what it found in the order of the configuration. It
// takes no longer than opts.Timeout and a little; when ctx ends before, what was not seen counts as not answering.
func Run(ctx context.Context, cfg config.Config, opts Options) Report {
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Version == "" {
		opts.Version = "dev"
	}
	look := sync.OnceValues(func() (store.Report, error) {
		ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
		return store.Inspect(ctx, storeConfig(cfg))
	})
	probes := []probe{
		func(context.Context) []Finding { return settings(cfg) },
		queueProbe(cfg),
		indexProbe(cfg),
		cataloguesProbe(cfg, opts),
		storeProbe(cfg, look),
		authProbe(cfg, look),
	}
	if p := tlsProbe(cfg.Server.TLS); p != nil {
		probes = append(probes, p)
	}
	if p := schemasProbe(cfg.Schemas); p != nil {
		probes = append(probes, p)
	}
	for _, r := range cfg.Repositories {
		probes = append(probes, repositoryProbe(r, opts, look))
		if k := r.Notifications.Kafka; len(k.Brokers) > 0 {
			probes = append(probes, kafkaProbe("notifications of "+r.Code, k))
		}
	}
	if k := cfg.Ingest.Kafka; len(k.Brokers) > 0 {
		probes = append(probes, kafkaProbe("ingest.kafka", config.KafkaTopic{Brokers: k.Brokers, Topic: k.RequestTopic, Group: k.Group}))
	}
	found := make([][]Finding, len(probes))
	var work sync.WaitGroup
	for i, look := range probes {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
			defer cancel()
			found[i] = look(ctx)
		})
	}
	work.Wait()
	var all []Finding
	for _, f := range found {
		all = append(all, f...)
	}
	return newReport(all)
}

// settings looks at the configuration itself, which was validated.
func settings(cfg config.Config) []Finding {
	found := []Finding{{subjectConfiguration, StatusOK, "valid, with " + count(len(cfg.Repositories), "repository", "repositories"), ""}}
	for _, w := range cfg.Warnings {
		found = append(found, Finding{subjectConfiguration, StatusWarn, w, ""})
	}
	if cfg.Auth.Mode != config.ModeNone || cfg.Server.Loopback() {
		return found
	}
	for i, r := range cfg.Repositories {
		// The built-in repository takes no secret: what is open to all is told of once, with auth.
		if r.Type != core.TypeLocal && r.Notifications.Webhook.Secret == "" {
			found = append(found, Finding{
				subjectConfiguration, StatusWarn,
				fmt.Sprintf("%s can be reached from other machines, and posts to /notifications/%s need no signature", cfg.Server.Listen, r.Code),
				fmt.Sprintf("set repositories[%d].notifications.webhook.secret, or have a proxy keep others out", i),
			})
		}
	}
	return found
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
