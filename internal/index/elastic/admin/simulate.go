package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
)

// Names of the template that is simulated: no index has the name, and no other template the priority.
const (
	simulatedPattern  = "tutti-mapping-plan"
	simulatedPriority = 1<<30 + 7_919
)

// Examine returns whether the cluster would create an index of spec, in Refused and Unasked. It changes nothing.
func (a *Reporter) Examine(ctx context.Context, spec index.Spec) (c index.Comparison, err error) {
	end, err := a.client.Begin(spec.Alias)
	if err != nil {
		return c, err
	}
	defer end()
	_, err = a.examine(ctx, spec, &c)
	return c, err
}

// examine sets in c whether the cluster would create an index of spec, and returns the mapping of that index in the cluster's form.
func (a *Reporter) examine(ctx context.Context, spec index.Spec, c *index.Comparison) (json.RawMessage, error) {
	file, tree, mappings, err := definition(spec)
	if err != nil {
		c.Refused = err
		return nil, nil
	}
	if mappings, err = a.meta.TranslateMapping(ctx, mappings); err != nil {
		return nil, err
	}
	engine, err := a.client.Engine(ctx)
	if err != nil {
		return nil, err
	}
	rendered, err := a.simulate(ctx, a.settings(engine, spec, file), mappings)
	switch failure := transport.ErrorOf(err); {
	case err == nil:
		return rendered, nil
	case failure != nil && failure.Status == http.StatusBadRequest && !strings.Contains(failure.Reason, "same priority"):
		c.Refused = refusal(err, tree)
		return nil, nil
	default:
		c.Unasked = true
		return mappings, nil
	}
}

// simulate returns a mapping as the cluster would return it, which it renders for an index template that is not stored. An error with the
// status 400 is the cluster's refusal of the mapping or of the settings; any other means that it does not tell, for example because the
// user lacks the privilege.
func (a *Reporter) simulate(ctx context.Context, settings map[string]any, mappings json.RawMessage) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{
		"index_patterns": []string{simulatedPattern}, "priority": simulatedPriority,
		"template": map[string]any{"settings": settings, "mappings": mappings},
	})
	if err != nil {
		return nil, unreadable(err)
	}
	var answer struct {
		Template struct {
			Mappings json.RawMessage `json:"mappings"`
		} `json:"template"`
	}
	err = a.client.Fetch(ctx, esapi.IndicesSimulateTemplateRequest{Body: bytes.NewReader(body)}, &answer)
	if err != nil {
		return nil, err
	}
	if len(answer.Template.Mappings) == 0 {
		return mappings, nil
	}
	return answer.Template.Mappings, nil
}

// normalized returns a mapping as the cluster would return it, raw if it does not.
func (a *Reporter) normalized(ctx context.Context, raw json.RawMessage) json.RawMessage {
	if rendered, err := a.simulate(ctx, map[string]any{}, raw); err == nil {
		return rendered
	}
	return raw
}

// refusal returns the error of a mapping that the cluster refuses, with the cluster's reason and the whole path of the field that it is
// about. tree is the mapping, nil if it is not known. Errors other than a refusal of the mapping or of the settings stay as they are.
func refusal(err error, tree *mapping.Field) error {
	failure := transport.ErrorOf(err)
	if failure == nil || failure.Status != http.StatusBadRequest {
		return err
	}
	switch failure.Type {
	case transport.TypeMapperParsing, transport.TypeIllegalArgument, "invalid_index_template_exception", "parse_exception", "settings_exception":
	default:
		return err
	}
	reason := failure.RootReason()
	if _, cause, ok := strings.Cut(reason, "invalid, cause ["); ok { // after the name of the simulated template
		reason = strings.TrimSuffix(cause, "]")
	}
	field := ""
	if fields := blamed(tree, reason); len(fields) == 1 {
		field = "the field " + fields[0] + ": "
	} else if len(fields) > 1 {
		field = "the fields " + strings.Join(fields, ", ") + ": "
	}
	return &core.Error{
		Code: core.CodeInvalid, Message: "the search engine refuses the mapping file: " + field + transport.TruncateReason(reason),
		Hint: "fix the mapping file", Err: err,
	}
}

// blamed returns the quoted paths of the fields that a reason is about. Engines name a field by the last part of its path, in brackets,
// with its type or parameter beside it; of the fields of one name those count that have most of these.
func blamed(tree *mapping.Field, reason string) []string {
	if tree == nil {
		return nil
	}
	words := bracketed(reason)
	var found []string
	most := 0
	for path, f := range tree.All() {
		named, n := false, 0
		for _, word := range words {
			switch {
			case word == path, strings.HasSuffix(path, "."+word):
				named = true
			case word == string(f.Type), f.Params[word] != nil:
				n++
			case slices.ContainsFunc(slices.Collect(maps.Values(f.Params)), func(raw json.RawMessage) bool { return string(raw) == `"`+word+`"` }):
				n++
			}
		}
		if named {
			n += len(words) + 1 // a name counts more than all else
		}
		if n == 0 || n < most || !named && n < 1 {
			continue
		}
		if n > most {
			most, found = n, nil
		}
		found = append(found, `"`+path+`"`)
	}
	if most <= len(words) && len(found) > maxBlamed { // no field is named, and many have the type
		return nil
	}
	return found[:min(len(found), maxBlamed)]
}

// maxBlamed limits the fields in one message.
const maxBlamed = 5

// bracketed returns the words in brackets.
func bracketed(text string) []string {
	var words []string
	for {
		_, rest, ok := strings.Cut(text, "[")
		if !ok {
			return words
		}
		word, rest, ok := strings.Cut(rest, "]")
		if !ok {
			return words
		}
		words, text = append(words, word), rest
	}
}
