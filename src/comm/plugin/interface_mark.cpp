// What tells a plug-in of this build from one of another: both ends have the hash of
// comm/host_engine.h.
extern "C" __attribute__((visibility("default"))) const char* bevatron_engine_interface() {
  return BEV_ENGINE_INTERFACE;
}
