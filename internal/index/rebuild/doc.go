// Package rebuild fills a second index beside the one that an alias stands for, and then moves the alias to it.
//
// No update is lost while the index is filled, in any number of processes: a Mirror writes each document to the second index and then
// to the alias, if a cell says that a rebuild runs. It reads the cell after the records were fetched and before they are written. So
// where it does not see the rebuild yet, the rebuild's pages, which are requested later, have records that are at least as new. The alias
// moves in one step that removes the alias of the second index: a write that finds it missing goes to the alias, and so to the index
// that was filled.
//
// A rebuild, a rollback and a deletion first claim the cell, and then change only the index whose identity the cell has: of several
// processes that do the same at the same time one changes the index, and one that is late changes nothing.
package rebuild
