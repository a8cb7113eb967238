package schemas

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/jsontree"
)

const (
	// firstRows is the size of the first batch of a list's rows. Later batches have about rowsBytes and at most mostRows, because rows
	// may be large.
	firstRows = 4
	mostRows  = 100
	rowsBytes = 1 << 20
	// keptShare: a body of all versions of a type is cached if it is at most 1/keptShare of Config.CacheBytes.
	keptShare = 8
)

// errNotCacheable is returned for a body that is too large to be cached.
var errNotCacheable = errors.New("the body is too large to be cached")

// bodies builds the bodies of analysis types for clients, and caches them. A registration changes only those of the latest versions.
type bodies struct {
	store Store
	cfg   Config
	calls *sharedCalls
	// shared is set if the store may have a later version than this process knows.
	shared *atomic.Bool
	// cached holds the bodies of single versions, latest those of GET without a version.
	cached *cache.LRU[bodyKey, []byte]
	latest *cache.LRU[bodyKey, latestBody]
}

// bodyKey identifies a body; version 0 is the latest version together with all versions.
type bodyKey struct {
	name       string
	version    int
	unrendered bool
}

// latestBody is the body of the latest version together with all versions; nil if it is too large to be cached.
type latestBody struct {
	body    []byte
	version int
	// at is a time at which the version was known to be the latest.
	at time.Time
}

// forget removes the cached bodies that a registration of name changes.
func (b *bodies) forget(name string) {
	b.latest.Invalidate(bodyKey{name: name}, bodyKey{name: name, unrendered: true})
}

// Type streams the body of one version of an analysis type, so that a large one is never in memory as a whole. Version 0 is the
// latest version together with all versions, newest first. unrendered omits the base schema. each must not modify the bytes; its
// error ends the stream and is returned. CodeNotFound with ErrorID analysis.type.not.found if there is none.
func (b *bodies) Type(ctx context.Context, name string, version int, unrendered bool, each func([]byte) error) error {
	key := bodyKey{name: name, version: version, unrendered: unrendered}
	if version < 0 {
		return notFound(name, version, nil)
	}
	if version > 0 {
		body, err := b.versionBody(ctx, key)
		if err != nil {
			return err
		}
		return each(body)
	}
	all, err := b.latestBody(ctx, key)
	switch {
	case err != nil:
		return err
	case all.body != nil:
		return each(all.body)
	default:
		return b.allVersions(ctx, key, all.version, each)
	}
}

// versionBody returns the body of one version.
func (b *bodies) versionBody(ctx context.Context, key bodyKey) ([]byte, error) {
	if body, ok := b.cached.Get(key); ok {
		return body, nil
	}
	// The generation keeps a caller from sharing a load that began before a registration which the caller knows to be complete.
	return share(ctx, b.calls, callKey("body", b.latest.Generation(), key), func(ctx context.Context) ([]byte, error) {
		t, err := b.store.AnalysisType(ctx, key.name, key.version)
		if err != nil {
			return nil, notFound(key.name, key.version, err)
		}
		return b.element(t, key.unrendered)
	})
}

// latestBody returns the body for version 0.
func (b *bodies) latestBody(ctx context.Context, key bodyKey) (latestBody, error) {
	known, ok := b.latest.Get(key)
	if ok && (!b.shared.Load() || b.cfg.Now().Sub(known.at) < freshFor) {
		return known, nil
	}
	generation := b.latest.Generation()
	return share(ctx, b.calls, callKey("whole", generation, key), func(ctx context.Context) (latestBody, error) {
		at := b.cfg.Now()
		t, err := b.store.AnalysisType(ctx, key.name, 0)
		if err != nil {
			return latestBody{}, notFound(key.name, 0, err)
		}
		all := latestBody{version: t.Version, at: at}
		if ok && t.Version == known.version {
			all.body = known.body
		} else if all.body, err = b.loadLatest(ctx, key, t); err != nil {
			return latestBody{}, err
		}
		b.latest.PutIn(generation, key, all, bodyCost(all.body, key))
		return all, nil
	})
}

// loadLatest builds the body for version 0, where latest is the latest version; nil if it is too large to be cached.
func (b *bodies) loadLatest(ctx context.Context, key bodyKey, latest datamodel.AnalysisType) ([]byte, error) {
	if _, err := b.element(latest, key.unrendered); err != nil { // caches its body, which allVersions reads
		return nil, err
	}
	var body []byte
	err := b.allVersions(ctx, key, latest.Version, func(piece []byte) error {
		if int64(len(body)+len(piece)) > b.cfg.CacheBytes/keptShare {
			return errNotCacheable
		}
		body = append(body, piece...)
		return nil
	})
	if errors.Is(err, errNotCacheable) {
		return nil, nil
	}
	return body, err
}

// allVersions streams the body for version 0. Versions have no gaps, and a version never changes.
func (b *bodies) allVersions(ctx context.Context, key bodyKey, latest int, each func([]byte) error) error {
	for version := latest; version > 0; version-- {
		body, err := b.versionBody(ctx, bodyKey{name: key.name, version: version, unrendered: key.unrendered})
		if err != nil {
			return err
		}
		pieces := [][]byte{[]byte(","), body}
		if version == latest {
			pieces = [][]byte{body[:len(body)-1], []byte(`,"versions":[`), body}
		}
		for _, piece := range pieces {
			if err := each(piece); err != nil {
				return err
			}
		}
	}
	return each([]byte("]}"))
}

// List streams the body of a page of analysis types: {limit, offset, count, resultSet}, where count is the number of all matching
// types. hideSchema omits their schemas, unrendered the base schema.
func (b *bodies) List(
	ctx context.Context, query datamodel.AnalysisTypeQuery, hideSchema, unrendered bool, each func([]byte) error,
) error {
	given := map[datamodel.AnalysisTypeRef]struct{}{}
	part := query
	for part.Limit = firstRows; ; {
		if query.Limit > 0 {
			part.Limit = min(part.Limit, query.Limit-len(given))
		}
		types, count, err := b.store.ListAnalysisTypes(ctx, part)
		if err != nil {
			return err
		}
		if part.Offset == query.Offset {
			begin := `{"limit":` + strconv.Itoa(query.Limit) + `,"offset":` + strconv.Itoa(query.Offset) + `,"count":` + strconv.Itoa(count) + `,"resultSet":[`
			if err := each([]byte(begin)); err != nil {
				return err
			}
		}
		if err := b.rows(types, hideSchema, unrendered, given, each); err != nil {
			return err
		}
		if len(types) < part.Limit || len(given) == query.Limit {
			return each([]byte("]}"))
		}
		part.Offset += len(types)
		part.Limit = rowsAfter(types)
	}
}

// rows streams the rows of a list. It skips rows that were returned before: a registration may have moved them down. No row can
// be missed, because none is ever removed.
func (b *bodies) rows(
	types []datamodel.AnalysisType, hideSchema, unrendered bool, given map[datamodel.AnalysisTypeRef]struct{}, each func([]byte) error,
) error {
	for _, t := range types {
		ref := datamodel.AnalysisTypeRef{Name: t.Name, Version: t.Version}
		if _, twice := given[ref]; twice {
			continue
		}
		if len(given) > 0 {
			if err := each([]byte(",")); err != nil {
				return err
			}
		}
		given[ref] = struct{}{}
		body, err := b.row(t, hideSchema, unrendered)
		if err != nil {
			return err
		}
		if err := each(body); err != nil {
			return err
		}
	}
	return nil
}

func (b *bodies) row(t datamodel.AnalysisType, hideSchema, unrendered bool) ([]byte, error) {
	if !hideSchema {
		return b.element(t, unrendered)
	}
	body, err := b.head(nil, t)
	return append(body, '}'), err
}

// rowsAfter returns the size of the next batch, for rows of the same average size as some.
func rowsAfter(some []datamodel.AnalysisType) int {
	size := 1
	for _, t := range some {
		size += len(t.Schema)
	}
	return min(max(len(some)*rowsBytes/size, 1), mostRows)
}

// element returns the body of one version, from the cache if it has it.
func (b *bodies) element(t datamodel.AnalysisType, unrendered bool) ([]byte, error) {
	key := bodyKey{name: t.Name, version: t.Version, unrendered: unrendered}
	if body, ok := b.cached.Get(key); ok {
		return body, nil
	}
	body, err := b.head(nil, t)
	if err != nil {
		return nil, err
	}
	schema := []byte(t.Schema)
	if !unrendered {
		if schema, err = render(string(t.Schema)); err != nil {
			return nil, core.WrapError(core.CodeInternal, "the stored schema cannot be read", err)
		}
	}
	body = append(append(append(body, `,"schema":`...), schema...), '}')
	b.cached.Put(key, body, bodyCost(body, key))
	return body, nil
}

// head writes an AnalysisType up to its schema, without its closing brace.
func (b *bodies) head(dst []byte, t datamodel.AnalysisType) ([]byte, error) {
	if len(t.Schema) == 0 {
		return nil, core.WrapError(core.CodeInternal, "the stored schema cannot be read", errors.New("it is empty"))
	}
	dst = jsontree.AppendString(append(dst, `{"name":`...), t.Name)
	dst = append(append(dst, `,"version":`...), strconv.Itoa(t.Version)...)
	dst = append(dst, `,"createdAt":"`...)
	dst = t.CreatedAt.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z07:00")
	dst, err := jsontree.AppendJSON(append(dst, `","options":`...), b.cfg.effective(t.Options))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "writing the options of an analysis type", err)
	}
	return dst, nil
}

// bodyCost is the memory of a cached body with its key.
func bodyCost(body []byte, key bodyKey) int64 { return int64(cap(body) + len(key.name) + 256) }
