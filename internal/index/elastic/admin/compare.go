package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/transport"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

// liveIndex is an index as the cluster returns it.
type liveIndex struct {
	Aliases    map[string]json.RawMessage `json:"aliases"`
	Mappings   json.RawMessage            `json:"mappings"`
	Settings   map[string]any             `json:"settings"`
	Defaults   map[string]any             `json:"defaults"`
	DataStream string                     `json:"data_stream"`
}

// live returns the indices behind a name, which may be an alias, an index or a data stream; none if it is missing.
func (a *cluster) live(ctx context.Context, name string) (map[string]liveIndex, error) {
	var answer map[string]liveIndex
	err := a.client.Fetch(ctx, esapi.IndicesGetRequest{Index: []string{name}, FlatSettings: new(true), IncludeDefaults: new(true)}, &answer)
	if f := transport.ErrorOf(err); f != nil && f.Status == http.StatusNotFound {
		return nil, nil
	}
	return answer, err
}

func kindOf(name string, found map[string]liveIndex) index.NameKind {
	_, same := found[name]
	switch {
	case len(found) == 0:
		return index.NameAbsent
	case same:
		return index.NameIndex
	case slices.ContainsFunc(slices.Collect(maps.Values(found)), func(x liveIndex) bool { return x.DataStream == name }):
		return index.NameDataStream
	case len(found) > 1:
		return index.NameSeveral
	default:
		return index.NameAlias
	}
}

// Compare returns what the cluster has under the name of spec.Alias, and how that differs from spec. It changes nothing.
func (a *Reporter) Compare(ctx context.Context, spec index.Spec) (index.Comparison, error) {
	end, err := a.client.Begin(spec.Alias)
	if err != nil {
		return index.Comparison{}, err
	}
	defer end()
	found, err := a.live(ctx, spec.Alias)
	if err != nil {
		return index.Comparison{}, err
	}
	c := index.Comparison{Kind: kindOf(spec.Alias, found), Indices: slices.Sorted(maps.Keys(found))}
	for _, one := range found {
		c.Aliases = slices.AppendSeq(c.Aliases, maps.Keys(one.Aliases))
	}
	slices.Sort(c.Aliases)
	c.Aliases = slices.DeleteFunc(slices.Compact(c.Aliases), func(name string) bool { return name == spec.Alias })
	file, err := mappingfile.Parse(spec.Mapping)
	if err != nil {
		c.Refused = err
		return c, nil
	}
	var wanted json.RawMessage
	if wanted, err = a.examine(ctx, spec, &c); err != nil || c.Kind == index.NameAbsent {
		return c, err
	}
	if c.Documents, err = a.count(ctx, spec.Alias); err != nil || len(c.Indices) > 1 || c.Kind == index.NameDataStream {
		return c, err
	}
	_, named := time.Parse(aliases.NameLayout, strings.TrimPrefix(c.Indices[0], spec.Alias+"-"))
	c.Foreign = c.Kind == index.NameAlias && named != nil
	one := found[c.Indices[0]]
	if c.Refused == nil {
		err = differences(spec, wanted, one.Mappings, &c)
	}
	c.Settings = settingDifferences(file, one.Settings)
	engine, unknown := a.client.Engine(ctx)
	if unknown != nil {
		return c, unknown
	}
	limits := map[string]any{}
	maps.Copy(limits, one.Defaults) // those of the version that created the index
	maps.Copy(limits, one.Settings)
	c.Limits = index.LimitDifferences(engine.LimitSettings(a.cfg.Limits.With(spec.Mapping)), limits)
	c.Limits = slices.DeleteFunc(c.Limits, func(d index.SettingDifference) bool { _, given := file.Settings[d.Setting]; return given })
	return c, err
}

// count returns the number of documents that searches of a name find.
func (a *cluster) count(ctx context.Context, name string) (int64, error) {
	var answer struct {
		Count int64 `json:"count"`
	}
	err := a.client.Fetch(ctx, esapi.CountRequest{Index: []string{name}}, &answer)
	return answer.Count, err
}

// differences compares a mapping with the wanted one of spec.
func differences(spec index.Spec, wanted, raw json.RawMessage, c *index.Comparison) error {
	tree, _, err := mapping.ParseForeign(wanted)
	if err != nil {
		return err
	}
	live, _, err := mapping.ParseForeign(raw)
	if err != nil {
		return core.WrapError(core.CodeUnsupported, "the mapping of "+spec.Alias+" cannot be parsed", err)
	}
	c.Fields, c.Retyped = spec.Differences(tree, live), spec.Types.Retyped(tree, live)
	return nil
}

// settingDifferences returns the settings of a mapping file that differ from those of an index.
func settingDifferences(file mappingfile.File, live map[string]any) []index.SettingDifference {
	var found []index.SettingDifference
	for _, name := range slices.Sorted(maps.Keys(file.Settings)) {
		wanted, has := settingText(file.Settings[name]), settingText(live[name])
		if wanted != has {
			found = append(found, index.SettingDifference{Setting: name, Wanted: wanted, Live: has})
		}
	}
	return found
}

// settingText returns a setting as the cluster returns it: a text or a list of them, "" for none.
func settingText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
