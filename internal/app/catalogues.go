package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/catalogue"
	"tutti/internal/catalogue/definition"
	"tutti/internal/config"
	"tutti/internal/core"
)

const (
	// embeddedCheckEvery is how often the mappings of the embedded index are read: they are at hand.
	embeddedCheckEvery = time.Second
	// embeddedSampleSoon is how often a sample of its documents is read as long as it has fewer than embeddedSampleFew.
	embeddedSampleSoon = 5 * time.Second
	embeddedSampleFew  = 100
	// indicesWait is how long the start waits for the indices of the repositories to be made, cataloguesWait how long for the
	// first mappings after that. An engine that does not answer delays it by no more than both.
	indicesWait    = 300 * time.Millisecond
	cataloguesWait = 200 * time.Millisecond
)

// openCatalogues reads what the catalogues shall be. What is wrong with one of them stops nothing; only a folder that cannot be
// read does.
func (a *App) openCatalogues(context.Context) error {
	set, err := check.Definitions(a.cfg)
	if err != nil {
		return err
	}
	log := a.log.With("component", "catalogues")
	folder := &catalogueFolder{cfg: a.cfg, log: log, named: map[string]bool{}}
	folder.tell(set)
	cfg := catalogue.Config{StartWait: cataloguesWait, Logger: log, Metrics: a.metrics.catalogues, Accept: a.graphs.Accept, Documents: a.index}
	if a.cfg.Catalogues.Dir != "" {
		cfg.Reload = folder.reread
	}
	if a.cfg.Index.URL == "" {
		cfg.CheckEvery, cfg.SampleSoon, cfg.SampleFew = embeddedCheckEvery, embeddedSampleSoon, embeddedSampleFew
	}
	a.catalogues = catalogue.New(set.Definitions, a.index, cfg)
	return nil
}

// catalogueFolder reads the folder of the catalogues again, and tells each time what it has not told the time before.
type catalogueFolder struct {
	cfg  config.Config
	log  *slog.Logger
	told []string
	// named are the catalogues without an access rule that were logged.
	named map[string]bool
}

// reread returns the catalogues as their folder says now, none when it cannot be read. It is called by one at a time.
func (f *catalogueFolder) reread() []definition.Definition {
	set, err := check.Definitions(f.cfg)
	if err != nil {
		set.Warnings = append(set.Warnings, core.MessageOf(err))
	}
	f.tell(set)
	return set.Definitions
}

func (f *catalogueFolder) tell(set definition.Set) {
	for _, w := range set.Warnings {
		if !slices.Contains(f.told, w) {
			f.log.Warn("configuration", "warning", w)
		}
	}
	f.told = set.Warnings
	for _, d := range set.Definitions {
		for _, found := range check.DefaultAccess(f.cfg.Auth, d) {
			if f.named[d.ID] {
				continue
			}
			f.named[d.ID] = true
			level := slog.LevelInfo
			if found.Status == check.StatusWarn {
				level = slog.LevelWarn
			}
			f.log.Log(context.Background(), level, "a catalogue has no access rule", "catalogue", d.ID, "reason", found.Message, "hint", found.Hint)
		}
	}
}

// expectIndex returns what shall be told how the making of a repository's index ended. The catalogues wait for that, so that an
// index which is about to be made is not found missing, and look at it once more when it was made later.
func (a *App) expectIndex(alias string) func(error) {
	known := make(chan struct{})
	a.expected = append(a.expected, known)
	tell := sync.OnceFunc(func() { close(known) })
	return func(err error) {
		tell()
		if err == nil {
			a.catalogues.Refresh(alias)
		}
	}
}

// startCatalogues begins to read the mappings, and waits a moment for those that come at once.
func (a *App) startCatalogues(ctx context.Context) error {
	enough := time.NewTimer(indicesWait)
	defer enough.Stop()
waiting:
	for _, known := range a.expected {
		select {
		case <-known:
		case <-enough.C:
			break waiting
		case <-ctx.Done():
			break waiting
		}
	}
	a.cleanup.push("catalogues", a.catalogues.Stop)
	return a.catalogues.Start(ctx)
}
