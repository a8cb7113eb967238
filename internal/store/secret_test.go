package store_test

import (
	"bytes"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestSecret: a secret is created once, also by concurrent processes, and kept.
func TestSecret(t *testing.T) {
	storetest.Configs(t, func(t *testing.T, cfg store.Config) {
		const processes = 4
		var got [processes][]byte
		var group sync.WaitGroup
		for i := range processes {
			s := storetest.OpenConfig(t, cfg)
			group.Go(func() {
				var err error
				if got[i], err = s.Secret(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		s := storetest.OpenConfig(t, cfg)
		again, err := s.Secret(t.Context(), "a")
		if err != nil || len(again) != 32 || bytes.Equal(again, make([]byte, 32)) {
			t.Fatalf("got %x, %v", again, err)
		}
		for _, one := range got {
			if !bytes.Equal(one, again) {
				t.Errorf("got %x and %x", one, again)
			}
		}
		if other, err := s.Secret(t.Context(), "b"); err != nil || bytes.Equal(other, again) {
			t.Errorf("another name has %x, %v", other, err)
		}
		if _, err := s.Secret(t.Context(), "\x00"); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("a name that is not UTF-8: %v", err)
		}
	})
}
