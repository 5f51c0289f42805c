import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: "tests/support/start-service.ts",
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // The machine of a developer has few cores, and the service needs one.
    maxWorkers: 2,
    minWorkers: 1,
  },
});
