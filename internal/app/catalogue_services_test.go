//go:build services

package app_test

// dropAtEnd removes an index at the end of the test.
func (w *world) dropAtEnd(alias string) {
	if e, shared := w.engine.(*elasticEngine); shared {
		w.t.Cleanup(func() { e.removeIndex(alias) })
	}
}
