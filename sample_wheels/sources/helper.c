/* The helper library that some of the samples need at run time. */
__attribute__((visibility("default"))) long helper_value(void) { return 4; }
