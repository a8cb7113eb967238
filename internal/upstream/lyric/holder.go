package lyric

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Holder returns the id of the record that contains a part: the record of the central entity that the foreign keys of the part lead
// to. id is "" if that is not exactly one record, or if the keys are not known: without the part's fields, or while Lyric does not return
// the dictionary. isPart is false if the part has a document of its own, or if the category lists no record that could contain it. An
// error is one of Page, or of ctx.
func (c *Client) Holder(ctx context.Context, organization string, part core.Part) (id string, isPart bool, err error) {
	central, _, err := c.centralOf(ctx, "")
	if err != nil || central == "" || part.Entity == central {
		return "", false, err
	}
	if part.Entity == "" || len(part.Fields) == 0 {
		return "", true, nil
	}
	relations, err := c.relations(ctx)
	if err == nil {
		search := holderSearch{Client: c, organization: organization, central: central, relations: relations, found: map[string]struct{}{}}
		var whole bool
		if whole, err = search.from(ctx, part.Entity, part.Fields, 0); whole && len(search.found) == 1 {
			id = slices.Collect(maps.Keys(search.found))[0]
		}
	}
	if err != nil { // a run of the organization finds the holder, and waits for an upstream that does not answer
		return "", true, ctx.Err()
	}
	return id, true, nil
}

// OtherEntities returns the entities of the category's dictionary whose records are parts of others, nil if it has no central entity. Errors
// are those of Organizations.
func (c *Client) OtherEntities(ctx context.Context) ([]string, error) {
	relations, err := c.relations(ctx)
	if err != nil || len(relations) < 2 {
		return nil, err
	}
	central, _, err := c.centralOf(ctx, "")
	if err != nil || central == "" {
		return nil, err
	}
	others := slices.Sorted(maps.Keys(relations))
	return slices.DeleteFunc(others, func(name string) bool { return name == central }), nil
}

// foreignKey is a foreign key of an entity, as a dictionary has it: fields of the entity, and those of another entity's record that have the
// same values.
type foreignKey struct {
	Schema   string `json:"schema"`
	Mappings []struct {
		Local   string `json:"local"`
		Foreign string `json:"foreign"`
	} `json:"mappings"`
}

// dictionary holds the foreign keys of each entity of a category's dictionary.
type dictionary struct {
	call      *semaphore.Weighted // held during the call to the upstream
	asked     time.Time
	relations map[string][]foreignKey
}

// relations returns the foreign keys of each entity of the category's dictionary, which must not be changed; none if the server does not
// return the dictionary.
func (c *Client) relations(ctx context.Context) (map[string][]foreignKey, error) {
	known := &c.dictionary
	if err := known.call.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer known.call.Release(1)
	if time.Since(known.asked) < centralFor {
		return known.relations, nil
	}
	asked := time.Now()
	relations, err := c.readDictionary(ctx)
	if err != nil && !errors.Is(err, errNotAnswered) {
		return nil, err
	}
	known.asked, known.relations = asked, relations
	return relations, nil
}

// errNotAnswered: the server does not have the route, or refuses it. Releases of Lyric differ in routes other than those of data.
var errNotAnswered = errors.New("lyric: no such route")

// optionalRoute converts an error of a route that a server may not have.
func optionalRoute(err error) error {
	var status *upstream.StatusError
	if errors.As(err, &status) && status.Status < http.StatusInternalServerError && !core.Retryable(err) {
		return core.WrapError(core.CodeUpstream, "the upstream does not answer a request", errNotAnswered)
	}
	return err
}

// readDictionary requests the dictionary.
func (c *Client) readDictionary(ctx context.Context) (map[string][]foreignKey, error) {
	relations := make(map[string][]foreignKey)
	r := upstream.Request{Segments: []string{"dictionary", "category", c.category}, Error: optionalRoute}
	err := c.calls.Document(ctx, r, "dictionary", func(document []byte) error {
		var dictionary struct {
			Schemas []struct {
				Name         string `json:"name"`
				Restrictions struct {
					ForeignKey []foreignKey `json:"foreignKey"`
				} `json:"restrictions"`
			} `json:"schemas"`
		}
		if json.Unmarshal(document, &dictionary) != nil || dictionary.Schemas == nil {
			return upstream.FormatError("dictionary")
		}
		for _, schema := range dictionary.Schemas {
			relations[schema.Name] = schema.Restrictions.ForeignKey
		}
		return nil
	})
	return relations, err
}

// maxKeySteps bounds the foreign keys that lead from a part to its holder.
const maxKeySteps = 16

// holderSearch follows foreign keys to the records of the central entity.
type holderSearch struct {
	*Client
	organization, central string
	relations             map[string][]foreignKey
	found                 map[string]struct{} // the ids of the central records
}

// from follows the foreign keys of an entity's record. It returns false if one of them does not lead to exactly one record.
func (s *holderSearch) from(ctx context.Context, entity string, fields map[string]string, steps int) (bool, error) {
	for _, key := range s.relations[entity] {
		if steps == maxKeySteps {
			return false, nil
		}
		if !s.leads(key.Schema, 0) {
			continue
		}
		id, parent, err := s.query(ctx, key, fields)
		if err != nil || id == "" {
			return false, err
		}
		if key.Schema == s.central {
			s.found[id] = struct{}{}
			continue
		}
		if whole, err := s.from(ctx, key.Schema, parent, steps+1); err != nil || !whole {
			return false, err
		}
	}
	return true, nil
}

// leads reports whether an entity is the central one, or its foreign keys lead there.
func (s *holderSearch) leads(entity string, steps int) bool {
	return entity == s.central || steps < maxKeySteps && slices.ContainsFunc(s.relations[entity], func(key foreignKey) bool {
		return s.leads(key.Schema, steps+1)
	})
}

// query returns the record that a foreign key of a record with fields names, "" for none or several.
func (s *holderSearch) query(ctx context.Context, key foreignKey, fields map[string]string) (id string, record map[string]string, err error) {
	type content struct {
		FieldName string   `json:"fieldName"`
		Value     []string `json:"value"`
	}
	type filter struct {
		Op      string `json:"op"`
		Content any    `json:"content"`
	}
	filters := make([]filter, len(key.Mappings))
	for i, mapping := range key.Mappings {
		value, ok := fields[mapping.Local]
		// Lyric puts names and values between quotes, without escaping them.
		if !ok || value == "" || strings.ContainsAny(value+mapping.Foreign, `'\`) {
			return "", nil, nil
		}
		filters[i] = filter{"in", content{mapping.Foreign, []string{value}}}
	}
	if len(filters) == 0 {
		return "", nil, nil
	}
	body, err := json.Marshal(filter{"and", filters})
	if err != nil {
		return "", nil, err
	}
	r := upstream.Request{
		Query:    "page=1&pageSize=2&entityName=" + url.QueryEscape(key.Schema),
		Segments: []string{"data", "category", s.category, "organization", s.organization, "query"}, Body: body, Error: optionalRoute,
	}
	err = s.calls.Document(ctx, r, "record", func(document []byte) error {
		var page struct {
			Records []struct {
				SystemID string          `json:"systemId"`
				Data     json.RawMessage `json:"data"`
			} `json:"records"`
		}
		if json.Unmarshal(document, &page) != nil || page.Records == nil {
			return upstream.FormatError("page")
		}
		if len(page.Records) == 1 {
			id, record = page.Records[0].SystemID, core.NewPart("", page.Records[0].Data).Fields
		}
		return nil
	})
	if errors.Is(err, errNotAnswered) { // as for no rows
		err = nil
	}
	return id, record, err
}
