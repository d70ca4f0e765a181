from __future__ import annotations

from django.urls import path

from datastores.api import datasets, uploads, views

urlpatterns = [
    path("datastores/", views.DatastoreList.as_view()),
    path("datastores/<str:name>/", views.DatastoreDetail.as_view()),
    path("datasets/", datasets.DatasetList.as_view()),
    path("datasets/<str:name>/", datasets.DatasetDetail.as_view()),
    path("datasets/<str:name>/refresh/", datasets.DatasetRefresh.as_view()),
    path("datasets/<str:name>/uploads/", uploads.DatasetUploads.as_view()),
    path("datasets/<str:name>/versions/<int:number>/upload/", uploads.VersionUpload.as_view()),
    path("datasets/<str:name>/versions/<int:number>/upload/files/", uploads.UploadFiles.as_view()),
    path("datasets/<str:name>/versions/<int:number>/upload/finish/", uploads.UploadFinish.as_view()),
    path("datasets/<str:name>/versions/<int:number>/", datasets.DatasetVersionDetail.as_view()),
    path("datasets/<str:name>/versions/<int:number>/files/", datasets.VersionFiles.as_view()),
    path("datasets/<str:name>/versions/<int:number>/differences/", datasets.VersionDifferences.as_view()),
]
