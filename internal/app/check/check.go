package check

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/store"
)

// DefaultTimeout is the time limit for each probe of a service.
const DefaultTimeout = 10 * time.Second

const subjectConfiguration = "configuration"

// Options configures Run. The zero value is the default.
type Options struct {
	// Timeout is the time limit for each probe of a service; 0 means DefaultTimeout.
	Timeout time.Duration
	// Version is the program's version, for the User-Agent; "dev" by default.
	Version string
}

// probe checks one subject of the configuration and returns when ctx ends.
type probe func(ctx context.Context) []Finding

// Run probes everything that cfg names concurrently, and returns the findings in the order of the configuration. It takes
// little longer than opts.Timeout. When ctx ends earlier, services that have not answered are reported as not answering.
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
		return store.Inspect(ctx, settings.Store(cfg))
	})
	probes := []probe{
		func(context.Context) []Finding { return configuration(cfg) },
		queueProbe(cfg),
		indexProbe(cfg),
		cataloguesProbe(cfg, opts),
		storeProbe(cfg, look),
		authProbe(cfg, look),
	}
	if p := tlsProbe(cfg.Server.TLS); p != nil {
		probes = append(probes, p)
	}
	probes = append(probes, schemasProbe(cfg.Schemas, opts, look))
	if p := tracingProbe(cfg.Tracing, opts); p != nil {
		probes = append(probes, p)
	}
	for i, target := range settings.AlertTargets(cfg) {
		probes = append(probes, alertProbe(i, target, settings.AlertConfig(cfg, opts.Version)))
	}
	for i, r := range cfg.Repositories {
		probes = append(probes, repositoryProbe(r, cfg.RepositoryKey(r.Code), opts, look))
		if k := r.Notifications.Kafka; len(k.Brokers) > 0 {
			probes = append(probes, kafkaProbe("notifications of "+r.Code, settings.KafkaKey(i), k))
		}
	}
	if k := cfg.Ingest.Kafka; len(k.Brokers) > 0 {
		probes = append(probes, kafkaProbe(settings.RequestTopicKey, settings.RequestTopicKey, config.KafkaTopic{KafkaConnection: k.KafkaConnection, Topic: k.RequestTopic, Group: k.Group}))
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
	return NewReport(all)
}

// configuration returns the findings about the configuration itself, which was validated.
func configuration(cfg config.Config) []Finding {
	found := []Finding{{subjectConfiguration, StatusOK, "valid, with " + count(len(cfg.Repositories), "repository", "repositories"), ""}}
	for _, w := range cfg.Warnings {
		found = append(found, Finding{subjectConfiguration, StatusWarn, w, ""})
	}
	if cfg.Auth.Mode != config.ModeNone || cfg.Server.Loopback() {
		return found
	}
	for i, r := range cfg.Repositories {
		// The built-in repository has no webhook secret; the auth finding covers it.
		if r.Type != core.TypeLocal && r.Notifications.Webhook.Secret == "" {
			found = append(found, Finding{
				subjectConfiguration, StatusWarn,
				fmt.Sprintf("%s can be reached from other machines, and POST /notifications/%s requires no signature", cfg.Server.Listen, r.Code),
				fmt.Sprintf("set repositories[%d].notifications.webhook.secret, or restrict access with a proxy", i),
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

// hostOf returns the host of a URL, without credentials and path.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "its address"
	}
	return u.Host
}
