package core

// RunFlags change how a run treats the index.
type RunFlags struct {
	// Force lifts the guard against removing most documents.
	Force bool
	// Rebuild fills another index, which then replaces the repository's. Only for whole repositories.
	Rebuild bool
	// Difference writes only the records whose documents differ from those in the index, and requests those that it does not list.
	Difference bool
}
