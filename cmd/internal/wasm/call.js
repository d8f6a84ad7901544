// octavo calls a function of the library: octavo("explore", request, file) is a promise of its
// answer. The program starts at the first call.
const octavo = (() => {
  const start = async () => {
    const text = atob(document.getElementById("octavo-wasm").textContent);
    const packed = new Blob([Uint8Array.from(text, c => c.charCodeAt(0))]);
    const binary = await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
    const go = new Go(), { instance } = await WebAssembly.instantiate(binary, go.importObject);
    go.run(instance);
    return globalThis.octavoCall;
  };
  let started;
  return async (name, request, file) => {
    started ??= start();
    return JSON.parse(await (await started)(name, JSON.stringify(request), file));
  };
})();
