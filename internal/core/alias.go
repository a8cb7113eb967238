package core

// Suffixes of the aliases of a rebuild.
const (
	NextSuffix     = "--next"
	PreviousSuffix = "--previous"
)

// NextAlias returns the alias of the index that a rebuild fills to replace that of alias.
func NextAlias(alias string) string { return alias + NextSuffix }

// PreviousAlias returns the alias of the index that alias had before its last rebuild.
func PreviousAlias(alias string) string { return alias + PreviousSuffix }
