# Builds the addon with node-gyp (bin/prepare.mjs). The sources and the flags are the Makefile's, which builds the same addon where node-gyp cannot.
{
  'targets': [
    {
      'target_name': 'sidetone_media',
      'sources': ['<!@(make -s sources)'],
      'include_dirs': ['.'],
      'cflags!': ['-fno-omit-frame-pointer', '-fno-strict-aliasing'],
      'cflags_cc!': ['-fno-omit-frame-pointer', '-fno-strict-aliasing', '-std=gnu++17', '-std=gnu++20'],
      'cflags_cc': ['<!@(make -s flags MODULES=../../node_modules)'],
      'ldflags': ['-pthread'],
      'libraries': ['<!@(make -s libraries)'],
    },
  ],
}
