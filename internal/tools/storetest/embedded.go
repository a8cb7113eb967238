//go:build !services

package storetest

func services() []database { return nil }
