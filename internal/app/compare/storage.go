package compare

import (
	"context"
	"slices"
	"strings"

	"tutti/internal/app/backup"
	"tutti/internal/app/check"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/store"
)

// StoredPart is a part of what tutti stores, and what the next start of this release changes in it.
type StoredPart struct {
	// Part is store, queue or index.
	Part string `json:"part"`
	// Change says what the start changes, "" for nothing.
	Change string `json:"change,omitempty"`
	// Before says whether the release that has written the part can be started on it again afterwards.
	Before string `json:"before"`
	// Unread is why it is not known, "" if it is; then Change and Before are "".
	Unread string `json:"unread,omitempty"`
}

// Values of StoredPart.Before.
const (
	readsOn  = "can be started again"
	readsNot = "does not start then: to go back, restore a backup made before"
)

// storedParts returns what the next start changes in what tutti stores. It changes nothing but the probes in the streams of an external NATS.
func storedParts(ctx context.Context, cfg config.Config) []StoredPart {
	ctx, cancel := context.WithTimeout(ctx, check.DefaultTimeout)
	defer cancel()
	return []StoredPart{storedTables(ctx, cfg), storedQueue(ctx, cfg), storedIndex(cfg)}
}

// unread returns a part that could not be read.
func unread(part string, err error) StoredPart {
	return StoredPart{Part: part, Unread: core.DisplayOf(err)}
}

func storedTables(ctx context.Context, cfg config.Config) StoredPart {
	r, err := store.Inspect(ctx, settings.Store(cfg))
	switch {
	case err != nil:
		return unread(backup.PartStore, err)
	case r.Unreadable:
		return StoredPart{Part: backup.PartStore, Unread: check.TablesState(r)}
	case r.Version > r.Newest:
		return StoredPart{Part: backup.PartStore, Change: check.TablesState(r), Before: readsOn}
	case r.Version > 0 && r.Version < r.Newest:
		return StoredPart{Part: backup.PartStore, Change: check.TablesState(r), Before: readsNot}
	default:
		return StoredPart{Part: backup.PartStore, Before: readsOn}
	}
}

func storedQueue(ctx context.Context, cfg config.Config) StoredPart {
	var limited []string
	if cfg.Queue.URL == "" {
		var err error
		if limited, err = queue.Limited(settings.QueueDir(cfg)); err != nil {
			return unread(backup.PartQueue, err)
		}
	} else {
		servers, err := queue.Probe(ctx, queue.Config{URL: cfg.Queue.URL.Reveal(), Security: settings.QueueSecurity(cfg.Queue), Replicas: cfg.Queue.Replicas})
		at := slices.IndexFunc(servers, func(s queue.ServerProbe) bool { return s.Err == nil })
		if err == nil && at < 0 {
			err = servers[0].Err
		}
		if err != nil {
			return unread(backup.PartQueue, err)
		}
		limited = servers[at].Limited
	}
	p := StoredPart{Part: backup.PartQueue, Before: readsOn}
	if len(limited) > 0 {
		p.Change = "no limit of one message for each subject any more: " + strings.Join(limited, ", ")
	}
	return p
}

func storedIndex(cfg config.Config) StoredPart {
	p := StoredPart{Part: backup.PartIndex, Before: readsOn}
	if cfg.Index.URL != "" {
		return p
	}
	x, err := settings.InspectIndex(cfg)
	switch {
	case core.CodeOf(err) == core.CodeConflict: // by a running tutti, which this release replaces
		return p
	case err != nil:
		return unread(backup.PartIndex, err)
	case x.Renewed:
		p.Change, p.Before = "the columns are built again from the documents", readsNot
	}
	return p
}
