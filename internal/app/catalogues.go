package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/rebuild"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

const (
	// embeddedCheckEvery is how often the mappings of the embedded index are read; they are in memory.
	embeddedCheckEvery = time.Second
	// embeddedSampleSoon is how often a sample of its documents is read as long as it has fewer than embeddedSampleFew.
	embeddedSampleSoon = 5 * time.Second
	embeddedSampleFew  = 100
	// folderCheckEvery is how often the folder of the catalogues is checked for changes.
	folderCheckEvery = 10 * time.Second
	// indicesWait is how long the start waits for the indices of the repositories, cataloguesWait how long it then waits for
	// the first mappings. An engine that does not answer delays the start by at most the sum.
	indicesWait    = 300 * time.Millisecond
	cataloguesWait = 200 * time.Millisecond
)

// openCatalogues reads the definitions of the catalogues. It returns an error only if their folder cannot be read, not for an
// invalid catalogue.
func (s *searching) openCatalogues(context.Context) error {
	set, err := settings.Definitions(s.cfg)
	if err != nil {
		return err
	}
	log := s.log.With("component", "catalogues")
	folder := &catalogueFolder{cfg: s.cfg, log: log, named: map[string]bool{}}
	folder.logNew(set)
	cfg := catalogue.Config{StartWait: cataloguesWait, Logger: log, Metrics: s.metrics.catalogues, Accept: s.graphs.Accept, Documents: s.data.Index}
	if s.cfg.Catalogues.Dir != "" {
		cfg.Reload, cfg.ReloadEvery, cfg.Settle = folder.reread, s.opts.FolderEvery, s.opts.FolderEvery/2
	}
	if s.cfg.Index.URL == "" {
		cfg.CheckEvery, cfg.SampleSoon, cfg.SampleFew = embeddedCheckEvery, embeddedSampleSoon, embeddedSampleFew
	}
	s.catalogues = catalogue.New(set.Definitions, s.data.Index, cfg)
	s.data.Grown = s.catalogues.Refresh
	return nil
}

// catalogueFolder rereads the folder of the catalogues, and logs the warnings that are new since the previous read.
type catalogueFolder struct {
	cfg    config.Config
	log    *slog.Logger
	logged []string
	// named holds the ids of the catalogues whose missing access rule was logged.
	named map[string]bool
}

// reread reads the folder and returns its catalogues, none if it cannot be read. It is not safe for concurrent use.
func (f *catalogueFolder) reread() []definition.Definition {
	set, err := settings.Definitions(f.cfg)
	if err != nil {
		set.Warnings = append(set.Warnings, core.MessageOf(err))
	}
	f.logNew(set)
	return set.Definitions
}

func (f *catalogueFolder) logNew(set definition.Set) {
	for _, w := range set.Warnings {
		if !slices.Contains(f.logged, w) {
			f.log.Warn("configuration", "warning", w)
		}
	}
	f.logged = set.Warnings
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

// expectIndex returns a callback for the result of creating a repository's index. startCatalogues waits for it, so that an index
// that is about to be created is not reported as missing. The callback refreshes the index's catalogues.
func (s *searching) expectIndex(alias string) func(error) {
	known := make(chan struct{})
	s.expected = append(s.expected, known)
	tell := sync.OnceFunc(func() { close(known) })
	return func(err error) {
		tell()
		if err == nil {
			s.catalogues.Refresh(alias)
		}
	}
}

// startCatalogues starts reading the mappings, and waits briefly for the first ones.
func (s *searching) startCatalogues(ctx context.Context) error {
	enough := time.NewTimer(indicesWait)
	defer enough.Stop()
waiting:
	for _, known := range s.expected {
		select {
		case <-known:
		case <-enough.C:
			break waiting
		case <-ctx.Done():
			break waiting
		}
	}
	s.cleanup.Push("catalogues", s.catalogues.Stop)
	if err := s.catalogues.Start(ctx); err != nil {
		return err
	}
	s.followRebuilds(ctx)
	return nil
}

// followRebuilds refreshes the catalogues once a process has moved the alias of a repository: all of them, since others' aliases and those
// of the mapping file may stand for its index too.
func (s *searching) followRebuilds(ctx context.Context) {
	cells := make([]string, 0, len(s.cfg.Repositories))
	for _, rc := range s.cfg.Repositories {
		cells = append(cells, rebuild.CellOf(rc.IndexName))
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() {
		s.data.Queue.Cells().Watch(watch, cells, func(string) { s.catalogues.RefreshAll() })
	})
	s.cleanup.Push("watch of rebuilds", func(context.Context) error {
		stop()
		watching.Wait()
		return nil
	})
}
