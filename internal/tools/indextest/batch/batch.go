package batch

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index"
)

// Alias returns the name of an alias that no other test has.
func Alias() string { return fmt.Sprintf("tutti-indextest-%016x", rand.Uint64()) }

// Encode encodes writes as the bulk writer does.
func Encode(x index.Index, alias string, writes ...core.Write) core.Batch {
	b := core.Batch{Index: alias}
	for _, w := range writes {
		item := core.BatchItem{Op: w.Op, ID: w.ID, Version: w.Version, Strict: w.Strict, Start: len(b.Body)}
		b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, w)
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	return b
}

// Describe returns why the engine did not take writes, a line for each; empty if it took all.
func Describe(results []core.Result) string {
	var text strings.Builder
	for i, r := range results {
		if r.Type != "" {
			fmt.Fprintf(&text, "\nitem %d: %s: %s", i, r.Type, r.Reason)
		}
	}
	return text.String()
}
