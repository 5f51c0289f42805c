// Counts, in each tab, what its page has begun and not ended: timers that end soon, requests, the reading of answers,
// and transitions. `settle` in steps.py asks for the number.
(() => {
  // Longer timers belong to what repeats or to what the reader sees for a while; nothing waits for them.
  const SOON_MS = 300;
  // A tab that is not shown draws no frames.
  const FRAMES_MS = 200;
  const soon = new Set();
  let asked = 0;
  const { setTimeout: begin, clearTimeout: drop, fetch: ask } = window;

  window.setTimeout = (run, wait_ms = 0, ...given) => {
    if (typeof run !== "function" || wait_ms > SOON_MS) return begin(run, wait_ms, ...given);
    const timer = begin(() => {
      soon.delete(timer);
      run(...given);
    }, wait_ms);
    soon.add(timer);
    return timer;
  };
  window.clearTimeout = (timer) => {
    soon.delete(timer);
    drop(timer);
  };

  // What the page does at once with an answer is done before a timer that begins with it ends.
  const counted = (answer) => {
    asked += 1;
    return answer.finally(() => begin(() => (asked -= 1)));
  };
  // The stream of events does not end.
  window.fetch = (...given) => (String(given[0]).includes("events/stream") ? ask(...given) : counted(ask(...given)));
  for (const name of ["arrayBuffer", "blob", "json", "text"]) {
    const read = Response.prototype[name];
    Response.prototype[name] = function () {
      return counted(read.call(this));
    };
  }

  const moves = (animation) => animation.playState === "running" && animation.effect?.getComputedTiming().endTime !== Infinity;
  /** The number after two frames, in which observers of sizes and of what is seen have been called. */
  window.unfinishedWork = async () => {
    await new Promise((done) => {
      requestAnimationFrame(() => requestAnimationFrame(() => begin(done)));
      begin(done, FRAMES_MS);
    });
    return soon.size + asked + document.getAnimations().filter(moves).length;
  };
})();
