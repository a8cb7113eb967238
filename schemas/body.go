package schemas

import (
	"context"
	"errors"
	"strconv"

	"tutti/internal/core"
	"tutti/schemas/jsontree"
)

const (
	// firstRows is how many rows of a list are read at first, most rows after that as many as rowsBytes hold: a list may
	// have any number of large ones.
	firstRows = 4
	mostRows  = 100
	rowsBytes = 1 << 20
	// keptShare is which part of the cache, one in so many, the body of all versions of a type may take at most.
	keptShare = 8
)

// errNotKept is returned for a body that is too large to be cached.
var errNotKept = errors.New("the body is too large to be kept")

// Type streams the body of one version of an analysis type, so that a large one is never in memory as a whole. Version 0 is the
// latest version together with all versions, newest first. unrendered omits the base schema. each must not modify the bytes; its
// error ends the stream and is returned. CodeNotFound with ErrorID analysis.type.not.found if there is none.
func (s *Service) Type(ctx context.Context, name string, version int, unrendered bool, each func([]byte) error) error {
	key := bodyKey{name: name, version: version, unrendered: unrendered}
	if version < 0 {
		return notFound(name, version, nil)
	}
	if version > 0 {
		body, err := s.versionBody(ctx, key)
		if err != nil {
			return err
		}
		return each(body)
	}
	all, err := s.latestBody(ctx, key)
	switch {
	case err != nil:
		return err
	case all.body != nil:
		return each(all.body)
	default:
		return s.versions(ctx, key, all.version, each)
	}
}

// versionBody returns the body of one version.
func (s *Service) versionBody(ctx context.Context, key bodyKey) ([]byte, error) {
	if body, ok := s.bodies.Get(key); ok {
		return body, nil
	}
	// A caller must not share a load that a registration, known to it to be done, overtook.
	return share(ctx, &s.calls, callKey("body", s.latestBodies.Generation(), key), func(ctx context.Context) ([]byte, error) {
		t, err := s.store.AnalysisType(ctx, key.name, key.version)
		if err != nil {
			return nil, notFound(key.name, key.version, err)
		}
		return s.element(t, key.unrendered)
	})
}

// latestBody returns the body for version 0.
func (s *Service) latestBody(ctx context.Context, key bodyKey) (latestBody, error) {
	known, ok := s.latestBodies.Get(key)
	if ok && (!s.shared.Load() || s.cfg.Now().Sub(known.at) < freshFor) {
		return known, nil
	}
	generation := s.latestBodies.Generation()
	return share(ctx, &s.calls, callKey("whole", generation, key), func(ctx context.Context) (latestBody, error) {
		at := s.cfg.Now()
		t, err := s.store.AnalysisType(ctx, key.name, 0)
		if err != nil {
			return latestBody{}, notFound(key.name, 0, err)
		}
		all := latestBody{version: t.Version, at: at}
		if ok && t.Version == known.version {
			all.body = known.body
		} else if all.body, err = s.loadLatest(ctx, key, t); err != nil {
			return latestBody{}, err
		}
		s.latestBodies.PutIn(generation, key, all, bodyCost(all.body, key))
		return all, nil
	})
}

// loadLatest builds the body for version 0, where latest is the latest version; nil if it is too large to be cached.
func (s *Service) loadLatest(ctx context.Context, key bodyKey, latest core.AnalysisType) ([]byte, error) {
	if _, err := s.element(latest, key.unrendered); err != nil { // which keeps it
		return nil, err
	}
	var body []byte
	err := s.versions(ctx, key, latest.Version, func(piece []byte) error {
		if int64(len(body)+len(piece)) > s.cfg.CacheBytes/keptShare {
			return errNotKept
		}
		body = append(body, piece...)
		return nil
	})
	if errors.Is(err, errNotKept) {
		return nil, nil
	}
	return body, err
}

// versions streams the body for version 0. Versions have no gaps, and a version never changes.
func (s *Service) versions(ctx context.Context, key bodyKey, latest int, each func([]byte) error) error {
	for version := latest; version > 0; version-- {
		body, err := s.versionBody(ctx, bodyKey{name: key.name, version: version, unrendered: key.unrendered})
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
func (s *Service) List(
	ctx context.Context, query core.AnalysisTypeQuery, hideSchema, unrendered bool, each func([]byte) error,
) error {
	given := map[core.AnalysisTypeRef]struct{}{}
	part := query
	for part.Limit = firstRows; ; {
		if query.Limit > 0 {
			part.Limit = min(part.Limit, query.Limit-len(given))
		}
		types, count, err := s.store.ListAnalysisTypes(ctx, part)
		if err != nil {
			return err
		}
		if part.Offset == query.Offset {
			begin := `{"limit":` + strconv.Itoa(query.Limit) + `,"offset":` + strconv.Itoa(query.Offset) + `,"count":` + strconv.Itoa(count) + `,"resultSet":[`
			if err := each([]byte(begin)); err != nil {
				return err
			}
		}
		if err := s.rows(types, hideSchema, unrendered, given, each); err != nil {
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
func (s *Service) rows(
	types []core.AnalysisType, hideSchema, unrendered bool, given map[core.AnalysisTypeRef]struct{}, each func([]byte) error,
) error {
	for _, t := range types {
		ref := core.AnalysisTypeRef{Name: t.Name, Version: t.Version}
		if _, twice := given[ref]; twice {
			continue
		}
		if len(given) > 0 {
			if err := each([]byte(",")); err != nil {
				return err
			}
		}
		given[ref] = struct{}{}
		body, err := s.row(t, hideSchema, unrendered)
		if err != nil {
			return err
		}
		if err := each(body); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) row(t core.AnalysisType, hideSchema, unrendered bool) ([]byte, error) {
	if !hideSchema {
		return s.element(t, unrendered)
	}
	body, err := s.head(nil, t)
	return append(body, '}'), err
}

// rowsAfter returns how many rows like some are read at once.
func rowsAfter(some []core.AnalysisType) int {
	size := 1
	for _, t := range some {
		size += len(t.Schema)
	}
	return min(max(len(some)*rowsBytes/size, 1), mostRows)
}

// element returns the body of one version, which is built once.
func (s *Service) element(t core.AnalysisType, unrendered bool) ([]byte, error) {
	key := bodyKey{name: t.Name, version: t.Version, unrendered: unrendered}
	if body, ok := s.bodies.Get(key); ok {
		return body, nil
	}
	body, err := s.head(nil, t)
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
	s.bodies.Put(key, body, bodyCost(body, key))
	return body, nil
}

// head writes an AnalysisType up to its schema, without its closing brace.
func (s *Service) head(dst []byte, t core.AnalysisType) ([]byte, error) {
	if len(t.Schema) == 0 {
		return nil, core.WrapError(core.CodeInternal, "the stored schema cannot be read", errors.New("it is empty"))
	}
	dst = jsontree.AppendString(append(dst, `{"name":`...), t.Name)
	dst = append(append(dst, `,"version":`...), strconv.Itoa(t.Version)...)
	dst = append(dst, `,"createdAt":"`...)
	dst = t.CreatedAt.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z07:00")
	dst, err := jsontree.AppendJSON(append(dst, `","options":`...), s.effective(t.Options))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "writing the options of an analysis type", err)
	}
	return dst, nil
}

// effective returns the options with the defaults for those that were never set. Its lists are never nil.
func (s *Service) effective(options core.AnalysisOptions) core.AnalysisOptions {
	options = merged(options, s.cfg.DefaultOptions)
	if options.FileTypes == nil {
		options.FileTypes = []string{}
	}
	if options.ExternalValidations == nil {
		options.ExternalValidations = []core.ExternalValidation{}
	}
	return options
}

// bodyCost is the memory of a cached body with its key.
func bodyCost(body []byte, key bodyKey) int64 { return int64(cap(body) + len(key.name) + 256) }
