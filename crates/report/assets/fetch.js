// What the page leaves out, from the server that it comes from. Entries that arrive become nodes.

const FETCHES_MAX = 40;
// Most attempts to get one answer.
const ATTEMPTS_MAX = 6;
// The fetches that have no answer yet, by directory.
const PENDING = new Map();
// The place in the order of a directory from which on entries are missing; null at the end.
const PLACES = new Map();

function canFetch(dir) {
  return DATA.fetches !== null && dir !== TREES && entriesLeft(dir) !== 0 && PLACES.get(dir) !== null;
}

// Fetches entries of a directory until some arrive that are no nodes yet. Returns their number; of
// several calls at a time, there is one fetch.
function fetchEntries(dir) {
  if (!PENDING.has(dir)) PENDING.set(dir, fetchRound(dir).finally(() => PENDING.delete(dir)));
  return PENDING.get(dir);
}

// Asks a server again that has too much to do, after the time that it says.
async function answered(address) {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await fetch(address);
    if (![429, 503].includes(answer.status) || attempt === ATTEMPTS_MAX) return answer;
    const seconds = Number(answer.headers.get("retry-after") ?? 1);
    await new Promise((done) => setTimeout(done, 1000 * seconds));
  }
}

async function fetchRound(dir) {
  const known = new Set(children(dir).map((node) => NODES.name[node]));
  for (let round = 0; round < FETCHES_MAX && PLACES.get(dir) !== null; round += 1) {
    const after = PLACES.has(dir) ? `&after=${encodeURIComponent(PLACES.get(dir))}` : "";
    const answer = await answered(`?inventory=${encodeURIComponent(DATA.fetches)}&dir=${NODES.id[dir]}${after}`);
    if (answer.status === 409) throw new Error("a newer inventory exists: reload the page");
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    const { entries: found, next } = await answer.json();
    PLACES.set(dir, next);
    const fresh = found.filter(([name]) => !known.has(name));
    fresh.forEach((entry) => addNode(dir, entry));
    if (fresh.length > 0) return fresh.length;
  }
  return 0;
}

function addNode(parent, [name, blocks, apparent, entries_, kind, age, uid, ignored, day_, state, id]) {
  const row = { parent, name, blocks, apparent, entries: entries_, kind, age, owner: DATA.ownerIds.indexOf(uid), ignored, day: day_, state, id };
  const node = NODES.name.length;
  for (const column of Object.keys(NODES)) NODES[column].push(row[column]);
  adopt(node);
}
