// Package fakes has one fake for each port that several tests need. Only tests may import it. Ports and Letters are functions, one for each
// method, which a test replaces; those of New answer from what is in memory, as Cells and Jobs do.
package fakes
