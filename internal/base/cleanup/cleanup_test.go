package cleanup_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tutti/internal/base/cleanup"
)

// TestCleanup: steps run last first, all of them also when one fails, and only once.
func TestCleanup(t *testing.T) {
	var c cleanup.Stack
	var ran []string
	broken := errors.New("broken")
	for _, name := range []string{"queue", "index", "http"} {
		c.Push(name, func(context.Context) error {
			ran = append(ran, name)
			if name == "index" {
				return broken
			}
			return nil
		})
	}
	err := c.Run(t.Context())
	if want := []string{"http", "index", "queue"}; !slices.Equal(ran, want) {
		t.Fatalf("ran %v, want %v", ran, want)
	}
	if !errors.Is(err, broken) || err.Error() != "stopping index: broken" {
		t.Fatalf("error %v, want that of the index", err)
	}
	if err := c.Run(t.Context()); err != nil || len(ran) != 3 {
		t.Fatalf("second run: %v, ran %v", err, ran)
	}
}
