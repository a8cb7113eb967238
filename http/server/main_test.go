package server_test

import (
	"testing"

	"tutti/internal/tools/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }
