package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
)

// deleteIndex deletes an index as it was just read, unless something else than its aliases own reads it, or it is behind the alias of a
// rebuild and tutti did not create it. Then it returns CodeConflict. It is the only function that deletes an index by itself, so that no
// caller can omit the check; Swap and Adopt delete one in the request that moves its aliases. The cluster has no deletion with a condition:
// an alias that is added between the two requests is deleted with the index.
func (a *cluster) deleteIndex(ctx context.Context, x physicalAliases, own ...string) error {
	if others := x.readers(own...); len(others) > 0 {
		return index.Shared(x.index, own[0], others)
	}
	if alias, next := strings.CutSuffix(own[0], core.NextSuffix); next && len(own) == 1 && !createdFor(x.index, alias) {
		return &core.Error{
			Code: core.CodeConflict, Message: "the alias " + own[0] + " stands for the index " + x.index + ", which tutti did not create",
			Hint: "remove the alias " + own[0] + " from it",
		}
	}
	_, err := a.client.Do(ctx, esapi.IndicesDeleteRequest{Index: []string{x.index}, IgnoreUnavailable: new(true)}, nil)
	return err
}

// createdFor reports whether a physical index has a name that Ensure creates for an alias.
func createdFor(physical, alias string) bool {
	_, err := time.Parse(aliases.NameLayout, strings.TrimPrefix(physical, alias+"-"))
	return err == nil
}

// readers returns the aliases and the data stream that read the index, without the aliases own.
func (x physicalAliases) readers(own ...string) []string {
	var others []string
	for _, name := range x.aliases {
		if !slices.Contains(own, name) {
			others = append(others, name)
		}
	}
	if x.dataStream != "" {
		others = append(others, x.dataStream)
	}
	return others
}
