package testkit

// FreeCleanups makes that what the cleanups of a test refer to is freed when it ends. The testing package keeps the functions of a parallel
// test until the last test of the process has ended (its slice of them is shortened, not cleared), and with them each server, store and index that
// they close. Call it before the other calls of Cleanup.
func FreeCleanups(t interface{ Cleanup(cleanup func()) }) {
	const most = 64 // more than a test registers: each of these takes the place of one
	t.Cleanup(func() {
		for range most {
			t.Cleanup(func() {})
		}
	})
}
