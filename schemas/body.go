package schemas

import (
	"context"
	"errors"
	"time"

	"tutti/internal/core"
)

// Type gives the body of one version of an analysis type; version 0 gives the latest with all versions beside it, the
// newest first. unrendered leaves the base schema out. CodeNotFound with ErrorID analysis.type.not.found when there is
// none. The caller must not change the bytes.
func (s *Service) Type(ctx context.Context, name string, version int, unrendered bool) ([]byte, error) {
	key := bodyKey{name: name, version: version, unrendered: unrendered}
	if version < 0 {
		return nil, notFound(name, version, nil)
	}
	if version == 0 {
		return s.whole(ctx, key)
	}
	if body, ok := s.bodies.get(key); ok {
		return body, nil
	}
	// A caller must not share a load that a registration, known to it to be done, overtook.
	return together(ctx, &s.flights, flightKey("body", s.wholes.now(), key), func(ctx context.Context) ([]byte, error) {
		t, err := s.store.AnalysisType(ctx, name, version)
		if err != nil {
			return nil, notFound(name, version, err)
		}
		return s.element(t, unrendered)
	})
}

// whole gives the body for version 0.
func (s *Service) whole(ctx context.Context, key bodyKey) ([]byte, error) {
	known, ok := s.wholes.get(key)
	if ok && (!s.shared.Load() || s.cfg.Now().Sub(known.at) < freshFor) {
		return known.body, nil
	}
	generation := s.wholes.now()
	return together(ctx, &s.flights, flightKey("whole", generation, key), func(ctx context.Context) ([]byte, error) {
		at := s.cfg.Now()
		if ok {
			t, err := s.store.AnalysisType(ctx, key.name, 0)
			if err != nil {
				return nil, notFound(key.name, 0, err)
			}
			if t.Version == known.version {
				s.wholes.put(generation, key, whole{known.body, known.version, at}, bodyCost(known.body, key))
				return known.body, nil
			}
		}
		return s.loadWhole(ctx, key, generation, at)
	})
}

func (s *Service) loadWhole(ctx context.Context, key bodyKey, generation uint64, at time.Time) ([]byte, error) {
	versions, err := s.store.AnalysisTypeVersions(ctx, key.name)
	if err != nil || len(versions) == 0 {
		return nil, notFound(key.name, 0, err)
	}
	var body []byte
	for i, t := range versions {
		element, err := s.element(t, key.unrendered)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			body = append(append(body, element[:len(element)-1]...), `,"versions":[`...)
		} else {
			body = append(body, ',')
		}
		body = append(body, element...)
	}
	body = append(body, "]}"...)
	s.wholes.put(generation, key, whole{body, versions[0].Version, at}, bodyCost(body, key))
	return body, nil
}

// List gives the body of a page of the analysis types: {limit, offset, count, resultSet}, count being the number of all
// that match. hideSchema leaves their schemas out, unrendered the base schema.
func (s *Service) List(ctx context.Context, query core.AnalysisTypeQuery, hideSchema, unrendered bool) ([]byte, error) {
	types, count, err := s.store.ListAnalysisTypes(ctx, query)
	if err != nil {
		return nil, err
	}
	body := []byte(`{"limit":` + decimal(query.Limit) + `,"offset":` + decimal(query.Offset) + `,"count":` + decimal(count) + `,"resultSet":[`)
	for i, t := range types {
		if i > 0 {
			body = append(body, ',')
		}
		if hideSchema {
			if body, err = s.head(body, t); err != nil {
				return nil, err
			}
			body = append(body, '}')
			continue
		}
		element, err := s.element(t, unrendered)
		if err != nil {
			return nil, err
		}
		body = append(body, element...)
	}
	return append(body, "]}"...), nil
}

// element gives the body of one version, which is made once.
func (s *Service) element(t core.AnalysisType, unrendered bool) ([]byte, error) {
	key := bodyKey{name: t.Name, version: t.Version, unrendered: unrendered}
	if body, ok := s.bodies.get(key); ok {
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
	s.bodies.put(0, key, body, bodyCost(body, key))
	return body, nil
}

// head writes an AnalysisType up to its schema, without its closing brace.
func (s *Service) head(dst []byte, t core.AnalysisType) ([]byte, error) {
	if len(t.Schema) == 0 {
		return nil, core.WrapError(core.CodeInternal, "the stored schema cannot be read", errors.New("it is empty"))
	}
	dst = appendString(append(dst, `{"name":`...), t.Name)
	dst = append(append(dst, `,"version":`...), decimal(t.Version)...)
	dst = append(dst, `,"createdAt":"`...)
	dst = t.CreatedAt.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z07:00")
	dst, err := appendJSON(append(dst, `","options":`...), s.effective(t.Options))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "writing the options of an analysis type", err)
	}
	return dst, nil
}

// effective gives the options with the defaults for those that were never given. Its lists are never nil.
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

// bodyCost is what a kept body takes, its key included.
func bodyCost(body []byte, key bodyKey) int64 { return int64(cap(body) + len(key.name) + 256) }
