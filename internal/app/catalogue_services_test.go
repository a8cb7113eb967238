//go:build services

package app_test

// forgets removes an index at the end of the test.
func (w *world) forgets(alias string) {
	if e, shared := w.engine.(*elasticEngine); shared {
		w.t.Cleanup(func() { e.removeIndex(alias) })
	}
}
