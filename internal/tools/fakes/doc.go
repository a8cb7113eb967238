// Package fakes has one fake for each port that several tests need. Only tests may import it. A fake is a struct of functions, one for each
// method, which a test replaces; its New makes functions that answer from what the fake has in memory.
package fakes
