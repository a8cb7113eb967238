// Package sharedtest is the conformance suite of indices that several repositories share (internal/index/merged), which every engine must pass.
package sharedtest
